"""A user's own model as a workload: its forward pass alone, over inputs drawn from the seed."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hwprof.errors import HwprofError, UsageError, described, first_line, with_cause
from hwprof.run.manifest import WorkloadRecord
from hwprof.workload import fitting_inputs, inference_mode, model_inputs, not_finite
from hwprof.workload.checkpoints import load_weights
from hwprof.workload.module_call import is_compiled
from hwprof.workload.protocol import Call, Outputs, Stages
from hwprof.workload.raised_at import defined_at, raised_at
from hwprof.workload.spec import WorkloadSpec
from hwprof.workload.tensors import input_text, refused, tensors_in
from hwprof.workload.thread_number import set_threads, why_another
from hwprof.workload.weights import WeightReader

NAMED = 3
"""How many of a module's names are told to somebody who misspelt one."""


class ModuleWorkload:
    """``package.module:factory``: a module, a module class, or a callable that returns a module, or ``(module,
    inputs)`` or ``(module, arguments, keywords)``; see ``model_inputs.examples``."""

    modules: Mapping[str, nn.Module]
    shapes_suffice = False  # it is the user's code

    def __init__(self, spec: WorkloadSpec) -> None:
        self._spec = spec
        self.modules = {}

    def prepare(self, *, values: bool = True) -> WorkloadRecord:
        """Makes the model and its inputs, and calls it once to see that they fit; with the factory's own values."""
        spec = self._spec
        weights = Path(spec.weights).absolute() if spec.weights is not None else None  # its code may go elsewhere
        set_threads(spec.threads)
        factory = _find(spec.model)
        place = defined_at(factory)
        self._factory = f"the factory {spec.model}{f' ({place})' if place is not None else ''}"
        torch.manual_seed(spec.seed)
        module, given = _make(spec.model, factory)
        set_threads(spec.threads)  # its code may have set another number
        self._module = module
        try:
            module.eval()
        except NotImplementedError:
            pass  # what torch.export makes is in the mode that it was made in
        except Exception as error:
            raise HwprofError(f"{spec.model}: eval() fails: {_where(error)}") from error
        if weights is not None:
            load_weights(self._module, weights)
        unsound = not_finite.told(self._module) if weights is not None else None
        self._call = Call(self._module, *self._inputs(given))
        self._try_once()
        self.modules = {"": self._module}
        tensors = list(tensors_in((self._call.arguments, self._call.keywords)))
        reader = WeightReader()
        held = reader.weights(self._module)
        return WorkloadRecord(
            name=spec.model,
            kind="module",
            weights=spec.weights or f"the factory's own (seed {spec.seed})",
            weights_unsound=unsound,
            parameters=held.number if held is not None else None,
            threads=torch.get_num_threads(),
            batch=tensors[0].shape[0] if tensors and tensors[0].ndim else 1,
            input_shapes=[input_text(tensor) for tensor in tensors],
            options={"seed": spec.seed},
            notes=[
                *filter(None, [why_another(spec.threads)]),
                *_notes(self._module),
                *_unreadable(reader.unreadable(self._module)),
                *model_inputs.notes(spec.inputs),
            ],
        )

    def iterate(self, stages: Stages, save_to: Path | None, outputs: Outputs | None = None) -> None:
        """One call of the model, as the only stage, ``inference``."""
        with torch.inference_mode():
            with stages("inference"):
                output = self._call.run()
            if outputs is not None:
                outputs(output)

    def forwards(self) -> list[Call]:
        """The one call."""
        return [self._call]

    def results(self) -> list[str]:
        """Nothing: what the outputs mean is the user's."""
        return []

    def boxes(self) -> list[torch.Tensor] | None:
        """None, for the same reason."""
        return None

    def _inputs(self, given: tuple[Any, ...]) -> model_inputs.Inputs:
        """The options', else the factory's."""
        if self._spec.inputs:
            return model_inputs.drawn(self._spec.inputs, self._spec.seed)
        if given:
            return model_inputs.examples(self._module, given)
        options = fitting_inputs.options(self._module, fitting_inputs.example(self._module))
        raise UsageError(
            f"{self._spec.model} returns a model without example inputs",
            f"{options}; or let the factory return (model, inputs)",
        )

    def _try_once(self) -> None:
        call = self._call
        try:
            call.run_as_measured()
        except Exception as error:
            if (unable := inference_mode.unable(self._spec.model, error)) is not None:
                raise unable from error
            inputs = (call.arguments, call.keywords)
            raise refused(
                self._spec.model, inputs, error, self._remedy(error), of_options=bool(self._spec.inputs)
            ) from error

    def _remedy(self, error: Exception) -> str:
        """Who gives what the model would take: the options, or the factory in the user's file."""
        inputs = (self._call.arguments, self._call.keywords)
        device = fitting_inputs.elsewhere(self._module, inputs)
        if device is not None:
            return f"a model and inputs on the CPU from {self._factory}: some of it is on {device}"
        wanted = f"forward{fitting_inputs.signature(self._module)}"
        found = fitting_inputs.example(self._module, inputs, error)
        refusing = fitting_inputs.refused_by(self._module, error) if found is None else None
        why = f": {refusing}" if refusing is not None else ""
        if self._spec.inputs:
            others = f", or a factory's (model, args, kwargs){why}" if found is None else ""
            return f"inputs for {wanted}: {fitting_inputs.options(self._module, found, inputs, error)}{others}"
        like = "" if found is None else f", like {found.text()}{f' for {found.name}' if found.name else ''},"
        return f"inputs that {wanted} takes{like} from {self._factory}{why}"


def _notes(module: nn.Module) -> list[str]:
    """What of the model hooks cannot see inside of."""
    closed = sorted({type(part).__name__ for part in module.modules() if is_compiled(part)})
    return [f"{name}: one layer to hooks; what it executes is told by kernels, not by layers" for name in closed]


def _unreadable(classes: Sequence[str]) -> list[str]:
    """Why a layer's parameters and bytes are not known."""
    return [
        f"parameters and bytes not available of layers with a {name}: its tensors cannot be read" for name in classes
    ]


def _find(name: str) -> Any:
    """The object that ``package.module:factory`` names, looked for in the current folder too: behind everything that is
    installed, so that no file there takes the place of a library's module."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise UsageError(f"{name} is not of the form package.module:factory")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise UsageError(
                f"there is no Python module {error.name}, neither installed nor in the current folder",
                "hwprof in the folder that it lies in, or that folder in PYTHONPATH",
            ) from error
        raise HwprofError(
            f"importing {module_name} fails: {with_cause(first_line(error), error)}", _install(error)
        ) from error
    except Exception as error:
        raise HwprofError(f"importing {module_name} fails: {_where(error)}", _install(error)) from error
    module = found
    for part in attribute.split("."):
        if not _has(found, part, module_name):
            hidden = _hides(module, module_name)
            raise UsageError(f"{module_name} has no {attribute}{hidden}", None if hidden else _instead(found, part))
        found = getattr(found, part)
    return found


def _has(owner: Any, name: str, module_name: str) -> bool:
    """Whether it has that attribute; a ``__getattr__`` of the module may fail in other ways."""
    try:
        return hasattr(owner, name)
    except Exception as error:
        raise HwprofError(f"looking for {name} in {module_name} fails: {_where(error)}") from error


def _instead(owner: Any, missing: str) -> str:
    """What of a module (or class) could be meant: the nearest names, else what it defines itself that can be called."""
    things = {name: thing for name, thing in getattr(owner, "__dict__", {}).items() if not name.startswith("_")}
    usable = [name for name, thing in things.items() if isinstance(thing, nn.Module) or callable(thing)]
    home = getattr(owner, "__module__", None) or getattr(owner, "__name__", None)
    own = [name for name in usable if _is_of(things[name], home)]
    near = difflib.get_close_matches(missing, own, n=NAMED) or difflib.get_close_matches(missing, usable, n=NAMED)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if own:
        return f"it has {', '.join(own[:NAMED])}{f' and {len(own) - NAMED} more' if len(own) > NAMED else ''}"
    return "define a function there that returns a torch module"


def _is_of(thing: Any, module: str | None) -> bool:
    """Whether the module defines it, and does not only import it."""
    return isinstance(thing, nn.Module) or getattr(thing, "__module__", module) == module


def _hides(module: Any, module_name: str) -> str:
    """What to say where another module of that name comes before the one in the current folder."""
    first = module_name.partition(".")[0]
    here = Path.cwd()
    its_own = [path for path in (here / f"{first}.py", here / first) if path.exists()]
    file = getattr(module, "__file__", None)
    if not its_own or (file is not None and Path(file).resolve().is_relative_to(here.resolve())):
        return ""
    return f": it is {file or 'built into Python'}, which comes before {its_own[0].name} here; rename that"


def _make(name: str, factory: Any) -> tuple[nn.Module, tuple[Any, ...]]:
    """The module, and what the factory gives behind it."""
    made = factory
    if not isinstance(factory, nn.Module):
        if not callable(factory):
            raise UsageError(f"{name} is neither a torch module nor callable")
        try:
            made = factory()
        except HwprofError:
            raise
        except Exception as error:
            remedy = _install(error)
            if isinstance(error, TypeError) and error.__traceback__ is not None and not error.__traceback__.tb_next:
                remedy = "name a function without arguments that calls it with its own"  # it was not entered
            raise HwprofError(f"{name}() fails: {_where(error)}", remedy) from error
    given: tuple[Any, ...] = ()
    if isinstance(made, tuple) and len(made) in (2, 3):
        made, *rest = made
        given = tuple(rest)
    if not isinstance(made, nn.Module):
        forgotten = "a return at its end: return model" if made is None else "a factory that returns a torch.nn.Module"
        raise UsageError(f"{name} gives {type(made).__name__}, not a torch module", f"{forgotten}, or (model, inputs)")
    if len(given) == 2 and not (isinstance(given[1], Mapping) and all(isinstance(key, str) for key in given[1])):
        raise UsageError(
            f"{name} gives three things, and the third is no dictionary of keywords",
            "(model, inputs), (model, kwargs) or (model, args, kwargs); several arguments are one tuple",
        )
    return made, given


def _install(error: Exception) -> str | None:
    """What to do where a Python module is missing that the model's code imports, or does not fit the others."""
    if "torchvision::" in with_cause(described(error), error):
        return "hwprof doctor: it says how torchvision comes to fit torch"
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    return f"pip install {error.name.partition('.')[0]}, or the package that has it"


def _where(error: BaseException) -> str:
    """``ValueError: bad width (net.py:12)``."""
    place = raised_at(error)
    return with_cause(f"{described(error)} ({place})" if place is not None else described(error), error)
