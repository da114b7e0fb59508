"""The process's handler of SIGSEGV: that of the C module, which finds out that code is written.

It is set past the C library, whose ``sigaction`` is frida's while it is loaded: frida keeps to itself what is set that
way, and calls the last one for what it cannot handle. So a handler that the model sets later (``faulthandler``, say)
does not take this one's place, and still gets all faults that are not ours.
"""

from __future__ import annotations

import errno
import signal

from collectors.instrumented.signal_handlers import Action, rt_sigaction


def handle_faults(handler: int) -> int:
    """From now on the function at that address handles them, as the one before was called; the address of that.
    Raises ``OSError``."""
    action = Action()
    rt_sigaction(signal.SIGSEGV, None, action)
    before = action.handler or 0
    if not action.restorer:
        raise OSError(errno.ENOTSUP, "frida handles no faults")
    action.handler = handler
    rt_sigaction(signal.SIGSEGV, action, None)
    return before
