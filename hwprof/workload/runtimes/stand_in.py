"""What stands in the place of a model's ``forward`` and has a runtime do it: at the first call of each kind the model
is exported and loaded, which takes seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from hwprof.errors import HwprofError
from hwprof.workload.module_call import FORWARD
from hwprof.workload.runtimes.exported import exported
from hwprof.workload.runtimes.flat_call import Leaves, Structure, flatten, kind_of, tensors_of
from hwprof.workload.runtimes.runtime import Profile, Runtime, Session, WatchedSession


class _Loaded(NamedTuple):
    """The model for one kind of call. It is loaded twice where it is to be watched: a runtime that keeps what its
    operators do cannot leave that for a while."""

    structure: Structure
    plain: Session
    watched: WatchedSession | None

    def run(self, tensors: Sequence[torch.Tensor], *, watch: bool) -> Any:
        session = self.watched if watch and self.watched is not None else self.plain
        found = session.run(tensors)
        if len(found) != self.structure.tensors:
            raise HwprofError(
                f"{len(found)} tensors come out of the exported model instead of {self.structure.tensors}"
            )
        return self.structure.filled(found)


class StandIn:
    """For one model. ``can_be_watched``: to be set before its first call."""

    def __init__(self, model: nn.Module, runtime: Runtime) -> None:
        self._model = model
        self._runtime = runtime
        self._own = model.__dict__.get(FORWARD)
        self._loaded: dict[tuple[Any, ...], _Loaded] = {}
        self.can_be_watched = False
        self._watch = False

    def run(self, *arguments: Any, **keywords: Any) -> Any:
        """As the model's ``forward``. Raises ``HwprofError`` where it cannot be exported, or loaded."""
        call = flatten(arguments, keywords)
        kind = kind_of(*call)
        if kind not in self._loaded:
            self._loaded[kind] = self._load(call)
        return self._loaded[kind].run(tensors_of(call[0]), watch=self._watch)

    def watch(self) -> None:
        """From now on the runtime keeps what its operators do."""
        self._watch = True

    def rest(self) -> None:
        """From now on it does not."""
        self._watch = False

    def profiles(self) -> list[Profile]:
        """Of each kind of call, when all is over. What is lost of one costs its layers, and a note says why."""
        return [_profile_of(one.watched) for one in self._loaded.values() if one.watched is not None]

    def _load(self, call: Leaves) -> _Loaded:
        there = self._model.__dict__.pop(FORWARD, None)
        if self._own is not None:
            self._model.__dict__[FORWARD] = self._own
        try:
            with exported(self._model, call) as model:
                watched = self._runtime.watched(model) if self.can_be_watched else None
                return _Loaded(model.structure, self._runtime.session(model), watched)
        finally:
            self._model.__dict__.pop(FORWARD, None)
            if there is not None:
                self._model.__dict__[FORWARD] = there


def _profile_of(session: WatchedSession) -> Profile:
    try:
        return session.profile()
    except HwprofError as error:
        return Profile((), notes=[f"layers not available: {error}"])
