"""Energy counters of Intel and AMD processors through the kernel's powercap interface."""
