"""The documentation says what the code does: its generated parts are in step, its commands and links exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from scripts.docs import commands, pages

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "tests").glob("*.md")]) + sorted(
    page for folder in ("docs", "hwprof", "examples") for page in (ROOT / folder).rglob("*.md")
)
PLACES = ("hwprof", "collectors", "scripts", "tests", "docs", "examples", ".ci", ".github")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def without_generated_parts(path: Path) -> str:
    return pages.PART.sub("", path.read_text(encoding="utf-8"))


def blocks(text: str) -> Iterator[str]:
    """Lines of code blocks: indented by four, or between fences."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()


def invocations(text: str) -> Iterator[list[str]]:
    """The arguments of each ``hwprof …`` in a page's code blocks."""
    for line in blocks(text):
        command = re.split(r"\s+(?:\||>|#|<Tab>)|&& ", line.removeprefix("$ ") + " ")
        for part in command:
            if re.match(r"hwprof (?!COMMAND)[a-z]+\b", part):
                yield shlex.split(part)[1:]


def anchors(text: str) -> set[str]:
    """What a page's headings can be linked by, as hosting sites make it."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }


def test_generated_parts_are_in_step() -> None:
    assert sorted(name(path) for path in pages.stale()) == [], "python -m scripts.docs brings them in step"


def test_every_command_has_its_page() -> None:
    folder = pages.DOCS / "commands"

    assert {path.stem for path in folder.glob("*.md")} == set(commands.names())
    for command in commands.names():
        text = (folder / f"{command}.md").read_text(encoding="utf-8")
        assert pages.parts_in(text) == [f"options of {command}"]


def test_a_part_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(KeyError):
        pages.filled("<!-- generated: options of nothing -->\n<!-- end -->")


def test_what_stands_by_hand_stays() -> None:
    text = "before\n<!-- generated: commands -->\nold\n<!-- end -->\nafter\n"

    filled = pages.filled(text)

    assert filled.startswith("before\n") and filled.endswith("\nafter\n")
    assert "old" not in filled and "hwprof collect" in filled
    assert pages.filled(filled) == filled


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_commands_of_a_page_can_be_typed(page: Path) -> None:
    for arguments in invocations(without_generated_parts(page)):
        command = commands.command(arguments[0])
        options = {opt for parameter in command.params for opt in (*parameter.opts, *parameter.secondary_opts)}
        options |= set(click.Context(command, help_option_names=["-h", "--help"]).help_option_names)
        used = {argument.partition("=")[0] for argument in arguments[1:] if argument.startswith("-")}
        assert used <= options, f"hwprof {shlex.join(arguments)}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", page.read_text(encoding="utf-8"))
    here = [place for place in named if place.partition("/")[0] in PLACES]

    assert [place for place in here if not (ROOT / place).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_modules_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"`([\w.-]+\.(?:py|toml))`", without_generated_parts(page)))
    known = {path.name for place in PLACES for path in (ROOT / place).rglob("*.*")} | {
        path.name for path in ROOT.iterdir()
    }

    assert named <= known
