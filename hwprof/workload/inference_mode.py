"""What models cannot do because hwprof calls them in ``torch.inference_mode``."""

from __future__ import annotations

from typing import Final

from hwprof.errors import HwprofError, first_line, with_cause
from hwprof.workload.raised_at import raised_at

NO_GRADIENTS: Final = ("does not require grad", "doesn't require grad", "requires_grad=False")
"""How torch says that gradients are asked for where none are recorded."""

INFERENCE_TENSORS: Final = ("inference tensor", "inferencemode")
"""How it says, in any case of letters, that one was given to code outside of the mode."""

TO_RECORD: Final = "a forward without backward(), or `with torch.inference_mode(False), torch.enable_grad():` around it"

TO_COPY: Final = "a forward that stays in that mode, or clone() there of what was computed in it"


def unable(model: str, error: BaseException) -> HwprofError | None:
    """The error to raise where a model fails for that reason, which is no input's; else None."""
    text = with_cause(first_line(error), error)
    if any(one in text.lower() for one in INFERENCE_TENSORS):
        remedy = TO_COPY
    elif any(one in text for one in NO_GRADIENTS):
        remedy = TO_RECORD
    else:
        return None
    place = raised_at(error)
    where = f" ({place})" if place is not None else ""
    return HwprofError(f"{model} fails in torch.inference_mode, in which hwprof calls models: {text}{where}", remedy)
