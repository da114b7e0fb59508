"""What is kept: the run directory, its tables and manifest."""
