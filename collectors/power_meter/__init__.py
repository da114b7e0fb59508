"""A power meter of the user's, outside of the machine: a program that prints watts, or a file of them."""
