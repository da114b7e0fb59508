"""PyTorch's own profiler: operators with their input shapes, in the trace pass."""
