"""The C library's allocator, or the one that stands in its place: what it holds, between iterations."""
