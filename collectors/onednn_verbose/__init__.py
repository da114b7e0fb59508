"""What oneDNN reports of what it executes: primitives with implementation, data types, layouts and time."""
