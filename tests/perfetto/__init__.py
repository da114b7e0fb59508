"""The real Perfetto tools, offline: the trace processor without a browser, and the UI in one."""
