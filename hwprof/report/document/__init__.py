"""What a report holds: one module a section, its structs and how they are made from a run."""
