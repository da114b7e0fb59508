"""How many intra-op threads the workload has: what was asked for, unless the model's code has the last word."""

from __future__ import annotations

import torch


def set_threads(threads: int | None) -> None:
    """None: torch's own choice, or whatever the model's code sets."""
    if threads:
        torch.set_num_threads(threads)


def why_another(threads: int | None) -> str | None:
    """What is to be said where there are not as many as were asked for, after a call of the model."""
    there = torch.get_num_threads()
    if not threads or there == threads:
        return None
    return f"the model's own code sets {there} threads at each call, not {threads}"
