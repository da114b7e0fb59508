from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hwprof.cli import app
from hwprof.report import sections
from tests.support import synthetic_variants as runs
from tests.support.command import hwprof_here
from tests.support.synthetic_run import build


def test_the_latest_run_below_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(tmp_path)
    assert app.run(["report", "--root", str(tmp_path), "--width", "100", "--top", "2"]) == 0
    text = capsys.readouterr().out
    assert sum(line.startswith("model.") for line in text.splitlines()) == 2
    assert max(map(len, text.splitlines())) <= 100
    assert app.run(["report", "--root", str(tmp_path), "--width", "100", "--top", "2", "--all"]) == 0
    text = capsys.readouterr().out
    assert "Hottest layers by time (2 of 5)" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_module_s_page_has_as_many_layers_as_were_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that take longest, in the order of execution; without the option all."""
    run = runs.sampled(tmp_path)
    assert app.run(["report", str(run.path), "--layer", "model", "--width", "120"]) == 0
    every = capsys.readouterr().out
    assert app.run(["report", str(run.path), "--layer", "model", "--width", "120", "--top", "2"]) == 0
    two = capsys.readouterr().out
    rows = [[line.split()[0] for line in text.splitlines() if line.startswith("model.")] for text in (every, two)]
    assert len(set(rows[0])) == 5 and len(set(rows[1])) == 2, rows
    assert "2 of 5 layers, those that take longest: --top" in two and "those that take longest" not in every


def test_json_holds_every_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = build(tmp_path)
    assert app.run(["report", str(run.path), "--format", "json", "--top", "1", "--sort", "macs"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["layers"]["rows"]) == 5
    assert found["hottest"] == {"sort": "macs", "top": 1, "layers": ["model.1.cv1.conv"]}


@pytest.mark.parametrize("section", sections.of_room("document"), ids=lambda one: one.name)
def test_a_section_as_json_is_that_key(
    section: sections.Section, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.zen(tmp_path)
    assert app.run(["report", str(run.path), "--format", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    code = app.run(["report", str(run.path), "--format", "json", "--section", section.name])
    said = capsys.readouterr()
    if whole[section.name] is None:
        assert code == 1 and whole["absent"][section.name]["reason"] in said.err and said.out == ""
    else:
        assert code == 0 and json.loads(said.out) == whole[section.name]
    assert app.run(["report", "--format", "json-schema", "--section", section.name]) == 0
    assert json.loads(capsys.readouterr().out)["$ref"] == f"#/$defs/{section.document.PART.__name__}"


@pytest.mark.parametrize("section", sections.of_room("text"), ids=lambda one: one.name)
def test_a_section_as_text_is_that_of_the_whole(
    section: sections.Section, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.zen(tmp_path)
    code = app.run(["report", str(run.path), "--width", "120", "--section", section.name])
    said = capsys.readouterr()
    if code:
        assert code == 1 and said.out == "" and len(said.err.splitlines()) == 1
        return
    assert app.run(["report", str(run.path), "--width", "120", "--all"]) == 0
    whole = capsys.readouterr().out
    title = next(line for line in said.out.splitlines() if line.strip())
    assert title in whole


def test_json_into_a_pipe_is_compact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = build(tmp_path)
    assert app.run(["report", str(run.path), "--format", "json"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_columns_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.zen(tmp_path)
    assert app.run(["report", str(run.path), "--width", "120", "--metrics", "TLB, cpi"]) == 0
    hottest = capsys.readouterr().out.partition("Hottest layers")[2].partition("Top-down")[0]
    assert "dTLB MPKI" in hottest and "IPC" in hottest and "GFLOP/s" not in hottest


@pytest.mark.parametrize(
    ("key", "header"),
    [
        ("cpi", "CPI"), ("ipc", "IPC"), ("macs", "MACs"), ("bytes", "bytes"), ("parameters", "parameters"),
        ("calls", "calls"), ("cycles", "cycles"), ("counted_flops", "FLOP"), ("topdown_backend", "backend"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", [[], ["--metrics", "llc_mpki"]])
def test_what_the_layers_are_sorted_by_is_shown(
    key: str, header: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.zen(tmp_path)
    assert app.run(["report", str(run.path), "--all", "--width", "80", "--sort", key, *more]) == 0
    title, _, table = capsys.readouterr().out.partition(f" by {key}")[2].partition("\n")
    assert header.lower() in table.splitlines()[0].lower() or key in table.splitlines()[0], title


def test_any_metric_sorts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.zen(tmp_path)
    for name in ("counted_flops", "topdown_backend", "uncore_dram_gbytes", "worker_instructions"):
        assert app.run(["report", str(run.path), "--format", "json", "--sort", name]) == 0
        assert len(json.loads(capsys.readouterr().out)["hottest"]["layers"]) == 5


def test_the_schema_needs_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["report", "--format", "json-schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].endswith("2020-12/schema")


def test_a_run_without_a_completed_pass_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["report", str(runs.without_passes(tmp_path).path)]) == 0
    assert "out of memory" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["foo", "Time", "cpii"])
def test_a_run_without_figures_refuses_the_same_keys(key: str, tmp_path: Path) -> None:
    whole, none = build(tmp_path / "whole"), runs.without_passes(tmp_path / "none")
    refused = [hwprof_here("report", str(run.path), "--sort", key) for run in (whole, none)]
    assert [done.returncode for done in refused] == [2, 2]
    assert all(f"cannot sort by '{key}'" in done.stderr for done in refused)
    assert hwprof_here("report", str(none.path), "--sort", "cpi").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--root", "{}/nowhere"], "no run in"),
        (["{}"], "is not a run directory"),
        (["{}/run", "--sort", "speed"], "one of time, macs, bytes, parameters, calls, order, or a metric or event"),
        (["{}/run", "--sort", "instrutions"], "Try: instructions, worker_instructions; "),
        (["{}/run", "--metrics", "cpj"], "Try: cpi; "),
        (["{}/run", "--section", "layer"], "Try: layers"),
        (["{}/run", "--section", "topdown", "--format", "json"], "no section 'topdown' as json. Try: one of noise, "),
        (["{}/run", "--section", "layers", "--kernels"], "are reports of their own"),
        (["{}/run", "--top", "0"], "--top"),
        (["{}/run", "--width", "5"], "--width"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tmp_path / "runs").path.rename(tmp_path / "run")
    assert app.run(["report", *(argument.format(tmp_path) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_neither_torch_nor_a_collector_is_imported(tmp_path: Path) -> None:
    run = build(tmp_path)
    code = (
        "import sys; from hwprof.cli import app;"
        f" status = app.run(['report', {str(run.path)!r}]);"
        " print([name for name in ('torch', 'collectors') if name in sys.modules], file=sys.stderr);"
        " sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (["--memory", "--format", "json"], 1_000_000),
        (["--memory", "--format", "json", "--top", "3"], 3),
        (["--memory"], 15),
        (["--format", "json"], 15),
    ],
)
def test_a_page_as_json_has_every_row_unless_fewer_are_asked_for(
    arguments: list[str], rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("hwprof.cli.report.show", lambda *_, top, **__: asked.append(top))
    assert app.run(["report", str(build(tmp_path).path), *arguments]) == 0
    assert asked == [rows]
