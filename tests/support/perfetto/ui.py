"""The real Perfetto UI in headless Chromium: what it shows of an address, and a picture of it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import BrowserContext, Page, Request, sync_playwright

_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
_IDLE: Final = (
    "!document.querySelector('.pf-linear-progress[state=indeterminate]')"
    " && !/Loading|Running plugin/.test(document.body.innerText.slice(0, 400))"
)
_LOOK: Final = """async () => {
  const shows = track => !track.parent?.parent || (track.parent.expanded && shows(track.parent));
  return ({
    slices: (await app.trace.engine.query('select count(*) as n from slice')).firstRow({n: 0}).n,
    tracks: app.trace.workspace.flatTracks.map(t => t.name),
    unfolded: app.trace.workspace.flatTracks.filter(shows).map(t => t.name),
    pinned: app.trace.workspace.pinnedTracks.map(t => t.name),
    in_view: [app.trace.timeline.visibleWindow.toTimeSpan().start.toString(),
              app.trace.timeline.visibleWindow.toTimeSpan().end.toString()],
    dialog: document.querySelector('.pf-modal,.modal-dialog')?.innerText ?? null,
    data_loss: /Data-loss/.test(document.body.innerText),
    text: document.body.innerText,
  });
}"""


@dataclass
class Shown:
    """What the UI itself says that it shows."""

    slices: int
    tracks: list[str]
    unfolded: list[str]
    """Those of the tracks that stand in no folded group."""
    pinned: list[str]
    in_view: tuple[int, int]
    """In nanoseconds of the trace's clock."""
    dialog: str | None
    data_loss: bool
    text: str
    """What the page reads."""
    page_errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    """Addresses elsewhere that the page asked for, and that its content policy did not stop."""


def look(chromium: str, url: str, picture: Path, height: int = 1000) -> Shown:
    """Opens ``url`` in the browser ``chromium``, waits until the UI has settled, and writes a screenshot."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium, args=_FLAGS, viewport={"width": 1600, "height": height}
        )
        try:
            return _look(context, url, picture)
        finally:
            context.close()


def _look(context: BrowserContext, url: str, picture: Path) -> Shown:
    page: Page = context.pages[0]
    errors: list[str] = []
    asked: list[Request] = []
    origin = url.partition("/#")[0]
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request))
    page.goto(url)
    page.wait_for_function("globalThis.app?.trace !== undefined", timeout=180_000)
    page.wait_for_function(_IDLE, timeout=180_000)
    page.evaluate("globalThis.waitForPerfettoIdle?.()")
    page.wait_for_timeout(1_000)
    said: dict[str, Any] = page.evaluate(_LOOK)
    page.screenshot(path=str(picture))
    begin, end = said.pop("in_view")
    foreign = [
        request.url
        for request in asked
        if not request.url.startswith((origin, "data:", "blob:")) and request.failure != "csp"
    ]
    return Shown(**said, in_view=(int(begin), int(end)), page_errors=errors, foreign=foreign)
