"""Every title of a column that the terminal's report can print, as its modules' source has them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import hwprof.report.text as text
from hwprof.hardware.metrics import facts

PLACE = Path(text.__file__).parent
MADE_AT_RUN_TIME = "?"


def titles() -> dict[str, str]:
    """The titles written out in the modules, each with the module that has it, and the metrics' own. Of one that is put
    together (``"instr." + mark``), what is written out; of a variable, ``MADE_AT_RUN_TIME`` and its name."""
    found = {title: "metrics.toml" for one in facts().values() for title in (one.title, one.short_title) if title}
    for file in sorted(PLACE.glob("*.py")):
        module = import_module(f"{text.__name__}.{file.stem}")
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id == "Column":
                given = call.args[:1] or [word.value for word in call.keywords if word.arg == "header"]
                found |= {title: file.stem for node in given for title in _written(node, module) if title}
    return found


def _written(node: ast.expr, module: ModuleType) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.BinOp):
        yield from _written(node.left, module)
    elif isinstance(node, ast.IfExp):
        yield from _written(node.body, module)
        yield from _written(node.orelse, module)
    elif isinstance(node, ast.JoinedStr):
        yield from _written(node.values[0], module)
    elif isinstance(node, ast.Name) and isinstance(known := inspect.getattr_static(module, node.id, None), str):
        yield known
    else:
        yield f"{MADE_AT_RUN_TIME}{ast.unparse(node)}"
