"""Tools of the project that are not installed with it."""
