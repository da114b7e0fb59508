"""hwprof: which layers of a neural network waste the processor, why, and in which kernel."""

import sys

__version__ = "0.1.0"

_kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
from hwprof import bytecode  # noqa: E402  # of itself nothing is written: whether it may be is not known before

sys.dont_write_bytecode = _kept or not bytecode.may_be_kept()
