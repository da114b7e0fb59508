"""Whose code an address is: symbols of files, maps of JIT code, and names that a person reads.

``process.resolver`` puts it together for a process; every other module has one job and knows no process.
"""
