"""The sources of measurements: one module or package each, found through the entry points ``hwprof.collectors``."""
