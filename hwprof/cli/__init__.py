"""The command line: one small module per command, with no logic of its own."""
