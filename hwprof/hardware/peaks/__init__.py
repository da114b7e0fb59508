"""What this machine can do at most, measured: floating point, bandwidth and latency of each cache level and of DRAM."""
