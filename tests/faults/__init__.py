"""The campaign of faults, in short."""
