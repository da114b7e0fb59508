"""What the command line's frame makes of failures and of foreign text."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from unicodedata import category

import click
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.cli import app, streams
from hwprof.errors import HwprofError, UsageError
from hwprof.printable import escaped_json
from hwprof.run.directory import RunDirectory
from hwprof.session.interruption import EndedBySignal, InterruptionError
from tests.support.command import hwprof, hwprof_here
from tests.support.synthetic_run import build

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\nc\udcff"


@pytest.mark.parametrize("name", sorted(app.COMMANDS.keys() - {"models", "open"}))
def test_what_prints_tables_takes_their_width(name: str) -> None:
    command = app.app.get_command(click.Context(app.app), name)
    assert command is not None and "width" in [parameter.name for parameter in command.params]


def fails_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> str:
    def command(*_: object) -> None:
        raise error

    monkeypatch.setattr(app.app, "invoke", command)
    done = hwprof_here("models")
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("error", [HwprofError(HOSTILE, HOSTILE), KeyError(HOSTILE), click.ClickException(HOSTILE)])
def test_a_message_is_one_printable_line(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    line = fails_with(error, monkeypatch)
    assert line.endswith("\n") and line[:-1].isprintable()


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied", "/data/run"), OSError(5, "Input/output error"), MemoryError()]
)
def test_what_the_system_refuses_is_no_defect(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    line = fails_with(error, monkeypatch)
    assert "defect" not in line and len(line.splitlines()) == 1
    assert getattr(error, "filename", None) is None or "/data/run" in line


def test_a_long_message_keeps_its_beginning_and_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    line = fails_with(HwprofError("begins " + "x" * 1_000_000, "something else"), monkeypatch)
    assert len(line) < 520
    assert line.startswith("hwprof: begins xx") and line.endswith("xx. Try: something else\n")


def test_a_panic_of_a_library_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    line = fails_with(pl.exceptions.PanicException("index out of bounds"), monkeypatch)
    assert line.count("\n") == 1 and "index out of bounds" in line


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HwprofError(HOSTILE), 1),
        (UsageError("no such layer"), 2),
        (click.UsageError("no such option"), 2),
        (InterruptionError(EndedBySignal(15)), 143),
        (KeyboardInterrupt(), 130),
        (KeyError("a defect"), 1),
    ],
)
def test_debug_shows_the_traceback_and_changes_no_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(*_: object) -> None:
        raise error

    monkeypatch.setattr(app.app, "invoke", command)
    plain, debug = hwprof_here("models"), hwprof_here("--debug", "models")
    assert (plain.returncode, debug.returncode) == (code, code)
    *above, message = debug.stderr.splitlines()
    assert message == plain.stderr.strip()
    assert ("Traceback (most recent call last):" in above) == (code not in (130, 143))
    assert all(line.isprintable() for line in above)


@pytest.mark.parametrize(
    ("interrupt", "code", "line"),
    [(KeyboardInterrupt(), 130, "hwprof: interrupted"), (EndedBySignal(1), 129, "hwprof: ended by SIGHUP")],
)
def test_an_interrupt_is_one_line_and_its_own_exit_code(
    interrupt: KeyboardInterrupt, code: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(*_: object) -> None:
        raise interrupt

    monkeypatch.setattr(click.Group, "invoke", command)
    done = hwprof_here("models")
    assert (done.returncode, done.stderr) == (code, f"{line}\n")


def test_an_option_s_own_characters_are_not_printed() -> None:
    done = hwprof_here("report", "--\x1b[31m")
    assert done.returncode == 2 and done.stderr[:-1].isprintable()


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("collect", "--modle", "yolov8n"), "--model"),
        (("collect", "--iter", "9"), "--iterations"),
        (("collect", "--json"), "--format json"),
        (("layers", "--csv"), "--format csv"),
        (("collect", "--out", "here"), "--output"),
        (("collect", "--python"), "hwprof report --python"),
        (("report", "--model=yolov8n"), "hwprof collect --model"),
        (("--model", "yolov8n"), "hwprof collect --model"),
        (("collect", "--picture"), None),
        (("collect", "--no"), None),
        (("collect", "-z"), None),
    ],
)
def test_an_option_that_there_is_not_comes_with_what_is_meant(arguments: tuple[str, ...], meant: str | None) -> None:
    done = hwprof_here(*arguments)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    command = " ".join(("hwprof", *arguments[:1])) if not arguments[0].startswith("-") else "hwprof"
    hint = f" Did you mean {meant}?" if meant is not None else ""
    assert done.stderr.endswith(f".{hint} (see: {command} --help)\n"), done.stderr


def test_of_similar_options_the_nearest_comes_first() -> None:
    assert "Did you mean --input-shape or --input?" in hwprof_here("collect", "--input-shap", "1").stderr


@pytest.mark.parametrize(
    "arguments", [("collect", "--source", "\udcff"), ("collect", "--output", "a\udcff"), ("report", "\udcff")]
)
def test_an_argument_that_is_not_utf8_is_refused(arguments: tuple[str, ...]) -> None:
    done = hwprof_here(*arguments)
    assert done.returncode == 2
    assert r"\xff is not UTF-8" in done.stderr


def test_without_arguments_the_help_stands_as_it_is() -> None:
    done = hwprof_here()
    lines = (done.stdout + done.stderr).splitlines()
    assert lines[0].startswith("Usage: hwprof") and "Commands:" in lines


def hostile_run(place: Path) -> RunDirectory:
    run = build(place)
    for record in run.manifest.passes:
        record.reason = HOSTILE[:-1]
    run.manifest.versions = {"torch": HOSTILE[:-1]}
    assert run.manifest.workload is not None
    run.manifest.workload.name = run.manifest.workload.sources[0] = HOSTILE[:-1]
    run.save_manifest()
    return run


def test_json_on_a_terminal_holds_no_control(tmp_path: Path) -> None:
    done = hwprof_here("report", str(hostile_run(tmp_path).path), "--format", "json")
    assert all(one.isprintable() or one == "\n" for one in done.stdout)
    assert json.loads(done.stdout)["workload"]["name"] == HOSTILE[:-1]


def test_every_json_is_printed_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    streams.print_json('"\x9b\x7f\\u009b"')
    assert capsys.readouterr().out == '"\\u009b\\u007f\\u009b"\n'


@given(st.text(max_size=30), st.sampled_from("\x7f\x9b\xad\u061c\u2028\u2029\u202e\u2066\ufeff\U000e0001\ud800"))
def test_escaped_json_means_the_same(text: str, hostile: str) -> None:
    escaped = escaped_json(json.dumps({"name": text + hostile}, ensure_ascii=False, indent=1))
    assert json.loads(escaped) == {"name": text + hostile}
    assert not any(category(one) in ("Cc", "Cf", "Zl", "Zp", "Cs") for one in escaped if one != "\n")


@pytest.mark.parametrize("columns", ["0", "1", "19"])
@pytest.mark.parametrize("command", [("report", "results"), ("explain", "cpi")])
def test_too_few_columns_are_as_none_given(columns: str, command: tuple[str, ...], tmp_path: Path) -> None:
    place = build(tmp_path).path.rename(tmp_path / "results").parent
    expected = hwprof_here(*command, cwd=place, columns=80).stdout
    assert expected
    assert hwprof_here(*command, cwd=place, columns=int(columns)).stdout == expected


def test_rows_of_a_report_are_bounded() -> None:
    assert hwprof_here("report", "--top", "9" * 30).returncode == 2


@pytest.mark.parametrize("command", [("report",), ("events",), ("explain", "cpi"), ("collect",)])
def test_a_width_is_bounded(command: tuple[str, ...]) -> None:
    assert hwprof_here(*command, "--width", "1001").returncode == 2


def test_odd_sizes_of_a_terminal_are_none() -> None:
    """rich takes "²" for a number."""
    done = hwprof("doctor", environment={"COLUMNS": "²", "LINES": "²"})
    assert (done.returncode, done.stderr) == (0, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "kept"), [(io.StringIO(), True), (Terminal(), False)])
def test_csv_is_as_it_is_but_on_a_terminal(stream: io.StringIO, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", stream)
    streams.print_csv("a,b\n\x1b[31mred,1\n")
    assert ("\x1b" in stream.getvalue()) is kept
    assert stream.getvalue().count("\n") == 2


def test_an_unknown_option_is_told_without_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module that knows what is likely meant cannot be read then."""

    class NoDescriptors:
        def find_spec(self, name: str, *_: object) -> None:
            if name.endswith("near_options"):
                raise OSError(24, "Too many open files")

    monkeypatch.delitem(sys.modules, "hwprof.cli.near_options", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoDescriptors(), *sys.meta_path])
    done = hwprof_here("report", "--layrs")
    assert done.returncode == 2
    assert done.stderr.startswith("hwprof: No such option '--layrs'.") and len(done.stderr.splitlines()) == 1
