"""The report as CSV files: one module a section."""
