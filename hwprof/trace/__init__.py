"""From tables to Perfetto: encoder (bytes), tracks (what goes where), viewer (local server)."""
