"""How much longer iterations took in which somebody looked closely, in words."""

from __future__ import annotations

from hwprof.report.document.slower import Slower
from hwprof.report.text import figures
from hwprof.report.text.figures import Glyphs


def took(found: Slower, glyphs: Glyphs) -> str:
    """``took ×1.79 as long (×1.7 to ×1.9)``, of iterations."""
    if found.median < 1:
        return "how much longer they took is not known: others disturbed the iterations that times are from"
    least, most = (figures.times_as_long(ratio, glyphs) for ratio in (found.least, found.most))
    return f"they took {figures.times_as_long(found.median, glyphs)} as long ({least} to {most})"
