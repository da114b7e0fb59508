"""The report on a terminal: one module a section, and what they share (page, grid, figures)."""
