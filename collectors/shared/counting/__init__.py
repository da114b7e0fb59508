"""What collectors that count events by thread share, whatever opens the counters: the list of threads, readings at
edges, the lifecycle of a pass, tables and notes."""
