"""Kinds of cases: each module makes them from random numbers."""
