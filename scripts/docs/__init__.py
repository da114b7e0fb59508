"""The parts of docs/ that are made from the code: commands' options, tables' columns, JSON schemas."""
