"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A deadline would make every property a timing test, and machines are noisy.
settings.register_profile("hwprof", deadline=None)
settings.load_profile("hwprof")
