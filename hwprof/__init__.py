"""hwprof: which layers of a neural network waste the processor, why, and in which kernel."""

__version__ = "0.1.0"
