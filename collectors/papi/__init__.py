"""PAPI as the source of counts: presets and native events of every thread."""
