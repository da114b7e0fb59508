"""DRAM traffic of the whole machine, from the sockets' memory controllers."""
