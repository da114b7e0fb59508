"""What several collectors share; no collector imports another one."""
