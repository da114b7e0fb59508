"""From a run directory to what people read: terminal, JSON, CSV."""
