"""Instructions and simulated cache misses by valgrind's callgrind, which runs the worker on a processor of its own."""
