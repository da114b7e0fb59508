"""Whether PAPI counts on this machine, for the tests that need it."""

from __future__ import annotations

import pytest

from collectors.papi.collector import PapiCollector
from tests.support.requirements import missing


def require_papi() -> None:
    """Skips the test where the installed PAPI is older than the processor, which no installation of it mends; else a
    PAPI that does not count is a missing tool."""
    availability = PapiCollector().availability()
    if availability.ok:
        return
    if "no default PMU" in str(availability.reason):
        pytest.skip(f"this PAPI is older than this processor: {availability.reason}")
    missing(f"a PAPI that counts ({availability.reason})")
