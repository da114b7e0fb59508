"""py-spy: what Python functions each thread was in, over time."""
