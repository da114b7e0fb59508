"""What a reader of py-spy's stacks must know: looks that failed or came late, and frames that are left out."""

from __future__ import annotations

import math
from typing import Final

from collectors.pyspy.stacks import LEVELS, Stacks
from collectors.pyspy.watcher import Looks
from hwprof.collector.contract import Note, NoteKind
from hwprof.errors import HwprofError

MOST_FAILED: Final = 0.05
"""Of the looks. Whatever a thread was in before a look that failed is taken to have gone on, and those that fail are
not any ones but those of deep and of quickly changing stacks: figures would be off by as much, one-sidedly."""

WORTH_SAYING: Final = 0.01
"""Some fail in every run, while a stack changes."""

REMEDY: Final = "--pyspy-blocking"

KEEP_UP: Final = "a lower --pyspy-rate, or a quiet machine"


def failed_share(looks: Looks, threads: float) -> float:
    """Of all looks; ``threads``: how many a look sees, on average."""
    made = looks.failed + looks.stacks / max(threads, 1.0)
    return looks.failed / made if made else 0.0


def of_pauses(looks: Looks | None) -> list[Note]:
    """Where py-spy did not look for a while: it had no processor, or was stopped. No error of a figure has that."""
    if looks is None or not looks.behind_s:
        return []
    text = f"py-spy fell behind by up to {looks.behind_s:.2f} s: what was met before a pause lasts through it"
    return [Note(NoteKind.SUSPECT, text, "Python stacks", KEEP_UP)]


def of_looks(looks: Looks | None, share: float) -> list[Note]:
    """None where fewer failed than chance moves the figures by. Raises ``HwprofError`` where too many did."""
    if looks is None:
        return [Note(NoteKind.SUSPECT, "py-spy does not say how many of its looks failed", "Python stacks")]
    chance = _chance(looks.failed / share) if share else 0.0
    if share < max(WORTH_SAYING, chance):
        return []
    text = f"{looks.failed} looks ({share:.1%}) failed"
    if share > max(MOST_FAILED, chance):
        raise HwprofError(f"{text}: what was met before them would be given their time", REMEDY)
    return [Note(NoteKind.SUSPECT, f"{text}: what was met before them has their time", "Python stacks", REMEDY)]


def _chance(looks: float) -> float:
    """By how much chance alone moves shares of so few looks: the standard error of a half, sqrt(1/4n)."""
    return 0.5 / math.sqrt(looks)


def of_stacks(stacks: Stacks) -> list[Note]:
    """What of py-spy's file is not in the table."""
    texts = {
        f"{stacks.refused} frames left out: a name, thread or time that is none": stacks.refused,
        f"{stacks.lines_unknown} frames have no line": stacks.lines_unknown,
        f"{stacks.too_deep} frames left out, below {LEVELS} others": stacks.too_deep,
    }
    return [Note(NoteKind.INCOMPLETE, text, "Python stacks") for text, number in texts.items() if number]
