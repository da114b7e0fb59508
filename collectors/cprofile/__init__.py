"""cProfile: every call of Python's functions by the thread that calls the model, by stage."""
