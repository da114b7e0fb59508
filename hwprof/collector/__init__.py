"""The collector contract: what a source of measurements is, and all that a third party's collector imports."""
