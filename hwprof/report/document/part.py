"""What the parts of a document have in common: one for each section, null where the run has nothing of it."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True):
    """A section's part of the document. Times are nanoseconds; null is: not measured."""
