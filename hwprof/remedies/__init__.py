"""Remedies that can be tried by a machine: what they change, and what to type to have them."""
