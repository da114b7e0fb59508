"""Pure functions, tables in, tables out: attribution, metrics, energy, overhead."""
