"""Finding and starting libpapi, and the catalogue of its presets."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from collectors.papi import library
from collectors.papi.library import Papi
from hwprof.errors import HwprofError
from hwprof.hardware import catalogue
from hwprof.hardware.metrics import operands, vocabulary


class Function:
    """A C function: callable, with a place for its types."""

    def __init__(self, does: Any) -> None:
        self.does = does
        self.restype: Any = None
        self.argtypes: Any = None

    def __call__(self, *args: Any) -> Any:
        return self.does(*args)


def component(name: bytes, disabled: bytes) -> ctypes.Array[ctypes.c_char]:
    """A PAPI_component_info_t as far as it is the same in every version."""
    return ctypes.create_string_buffer(name.ljust(512, b"\0") + disabled + b"\0")


class FakeLibrary(SimpleNamespace):
    """The shared library as of a version, with its components."""

    def __init__(self, version: int, components: list[ctypes.Array[ctypes.c_char]]) -> None:
        current = version & ~0xFFFF
        super().__init__(
            asked=[],
            PAPI_strerror=Function(lambda code: b"No such thing"),
            PAPI_get_component_info=Function(
                lambda index: ctypes.addressof(components[index]) if 0 <= index < len(components) else None
            ),
            PAPI_attach=Function(None),
            PAPI_library_init=Function(lambda asked: asked if asked == current else -1),
            PAPI_get_opt=Function(lambda option, _: version if option == 21 else -1),
            PAPI_num_components=Function(lambda: len(components)),
            PAPI_create_eventset=Function(lambda number: -16),
        )


def papi(version: int, *components: ctypes.Array[ctypes.c_char]) -> Papi:
    return Papi(cast(ctypes.PyDLL, FakeLibrary(version, list(components))), "libpapi.so")


@pytest.mark.parametrize(("version", "text"), [(0x06000000, "6.0.0"), (0x07000100, "7.0.1"), (0x07020000, "7.2.0")])
def test_versions_six_and_seven_start(version: int, text: str) -> None:
    assert papi(version, component(b"perf_event", b"")).version == text


def test_another_version_is_refused_with_what_helps() -> None:
    with pytest.raises(HwprofError) as raised:
        papi(0x05070000)
    assert "libpapi.so" in raised.value.message and "libpapi-dev" in (raised.value.remedy or "")


def test_the_component_is_found_by_its_name_and_says_why_it_is_disabled() -> None:
    found = papi(0x07000000, component(b"sde", b""), component(b"perf_event", b"disabled by Linux with paranoid=3"))
    assert found.component == 1
    assert found.why_disabled() == "disabled by Linux with paranoid=3"
    assert papi(0x07000000, component(b"perf_event", b"")).why_disabled() is None
    assert "without the component" in (papi(0x07000000, component(b"sde", b"")).why_disabled() or "")


def test_a_refused_call_has_papis_words() -> None:
    with pytest.raises(library.PapiError) as raised:
        papi(0x07000000, component(b"perf_event", b"")).open_set(["PAPI_TOT_CYC"], None)
    assert (raised.value.code, str(raised.value)) == (-16, "No such thing")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Loading anew, and the loaded library forgotten afterwards."""
    library.load.cache_clear()
    monkeypatch.delenv(library.ENVIRONMENT, raising=False)
    yield monkeypatch
    library.load.cache_clear()


def test_the_environments_library_is_the_only_one_tried(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh.setenv(library.ENVIRONMENT, str(tmp_path / "libpapi.so"))
    with pytest.raises(HwprofError) as raised:
        library.load()
    assert f"PAPI_LIBRARY names {tmp_path}/libpapi.so, which is not libpapi" in raised.value.message


def test_the_systems_library_comes_before_the_wheels(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = tmp_path / "pypapi"
    wheel.mkdir()
    (wheel / "__init__.py").touch()
    (wheel / "_papi.abi3.so").touch()
    fresh.syspath_prepend(str(tmp_path))
    there = {"libpapi.so.7.0", str(wheel / "_papi.abi3.so")}
    tried: list[str] = []

    def open_library(path: str) -> ctypes.PyDLL:
        tried.append(path)
        if path not in there:
            raise OSError("no such file")
        return cast(ctypes.PyDLL, FakeLibrary(0x07000000, [component(b"perf_event", b"")]))

    fresh.setattr("ctypes.util.find_library", lambda name: None)
    fresh.setattr(library, "_open", open_library)
    assert library.load().path == "libpapi.so.7.0"
    there.remove("libpapi.so.7.0")
    library.load.cache_clear()
    assert library.load().path == str(wheel / "_papi.abi3.so")
    there.clear()
    library.load.cache_clear()
    with pytest.raises(HwprofError) as raised:
        library.load()
    assert raised.value.message == "libpapi is not installed"
    assert "apt-get install libpapi-dev" in (raised.value.remedy or "")


def test_the_catalogues_presets_and_recipes() -> None:
    """Recipes use metrics of the vocabulary and events of the file; a preset's code is its name."""
    file = catalogue.catalogue(catalogue.PAPI)
    names = {event.name for event in file.events}
    assert len(names) == len(file.events)
    presets = [event for event in file.events if event.kind == "hardware"]
    assert all(event.pmu == "papi" and event.code == event.name for event in file.events)
    assert all(re.fullmatch(r"PAPI_[A-Z0-9]+_[A-Z]+", event.name) for event in presets)
    known = {metric.name for metric in vocabulary()}
    for recipe in file.metric:
        assert recipe.name in known
        assert set(operands(recipe.of)) | set(operands(recipe.per or "")) <= names | {"counted-time"}
    assert next(event.name for event in file.defaults()) == "perf::TASK-CLOCK"
