"""Random instruction sequences, each executed natively, in single steps and instrumented, and compared."""
