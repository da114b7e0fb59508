"""Following holds for long, in process after process, and beside everything that a process does."""

from __future__ import annotations

import platform

import pytest

from tests.support.instrumented_process import child

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")

FRESH = 5
"""Processes that follow from their start; each takes seconds. scripts/benchmarks/instrumented.py has fifty of them."""


def test_a_hundred_forwards_over_several_sizes() -> None:
    """oneDNN keeps few kernels here, so that each size makes its own anew where others have been: code that was
    instrumented is unmapped, and other code comes."""
    said = child(
        """
        os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] = "4"
        from torch import nn
        model = nn.Sequential(nn.Conv2d(8, 32, 3), nn.ReLU(), nn.Conv2d(32, 48, 3, stride=2), nn.Conv2d(48, 16, 1))
        inputs = [torch.rand(1, 8, size, size + 5) for size in (20, 33, 48, 64, 81)]
        with torch.inference_mode():
            model.eval()
            expected = [model(x) for x in inputs]
            engine = Engine()
            engine.instrument()
            same = []
            for _ in range(20):
                for x, value in zip(inputs, expected):
                    same.append(bool((model(x) == value).all()))
                    engine.edge()
            self_test(engine)
            engine.uninstrument()
        contexts = engine.memory.contexts()
        end(same=same, threads=len(contexts), kept=engine.memory.control.kept_mappings,
            undecoded=engine.memory.control.undecoded, lost=sum(context.lost_blocks for context in contexts))
        """
    )
    assert said["same"] == [True] * 100
    assert said["threads"] == 2
    assert (said["undecoded"], said["lost"]) == (0, 0)
    assert said["kept"] > 20, "code was dropped and made anew"


FRESH_WORKER = """
    from torch import nn
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.SiLU(), nn.Conv2d(16, 16, 3), nn.Flatten(), nn.Linear(12544, 10))
    x = torch.rand(1, 3, 32, 32)
    with torch.inference_mode():
        expected = model.eval()(x)
        engine = Engine()
        engine.instrument()
        threads = self_test(engine).threads
        same = [bool((model(x) == expected).all()) for _ in range(5)]
        engine.uninstrument()
        same.append(bool((model(x) == expected).all()))
    end(same=same, threads=threads)
"""


def test_fresh_processes() -> None:
    assert [child(FRESH_WORKER) for _ in range(FRESH)] == [{"same": [True] * 6, "threads": 2}] * FRESH


def test_child_processes_of_every_kind() -> None:
    """The children are not instrumented and the parent is, before and after."""
    said = child(
        """
        import multiprocessing, subprocess
        from torch.utils.data import DataLoader, TensorDataset

        def square(number):
            return number * number

        a = torch.rand(64, 64)
        expected = a @ a
        engine = Engine()
        engine.instrument()
        found = {}
        loader = DataLoader(TensorDataset(torch.arange(12.0)), batch_size=4, num_workers=2)
        found["loader"] = sorted(value for batch, in loader for value in batch.tolist()) == list(range(12))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found["pool"] = pool.map(square, range(5)) == [0, 1, 4, 9, 16]
        found["shell"] = subprocess.run("echo $((6 * 7))", shell=True, capture_output=True).stdout == b"42\\n"
        found["preexec"] = subprocess.run(["true"], preexec_fn=lambda: None).returncode == 0
        found["system"] = os.system("exit 3") >> 8 == 3
        found["popen"] = os.popen("echo hello").read() == "hello\\n"
        found["result"] = bool((a @ a == expected).all())
        found["following"] = engine.instrumenting
        self_test(engine)
        engine.uninstrument()
        end(**found)
        """
    )
    assert all(said.values()), said


def test_forks_from_other_threads() -> None:
    """A thread that is not instrumented forks while the main one is, and works."""
    said = child(
        """
        a = torch.rand(200, 200)
        expected = a @ a
        engine = Engine()
        engine.instrument()
        statuses = []

        def fork():
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    os._exit(7)
                statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        threads = [threading.Thread(target=fork) for _ in range(2)]
        for thread in threads:
            thread.start()
        same = [bool((a @ a == expected).all()) for _ in range(50)]
        for thread in threads:
            thread.join()
        tested = self_test(engine).threads
        engine.uninstrument()
        end(statuses=statuses, same=all(same), instrumented=tested)
        """
    )
    assert said["statuses"] == [7] * 10
    assert said["same"]


def test_a_library_whose_file_was_deleted_is_a_reason_and_no_crash() -> None:
    """As of a module that was compiled in a temporary folder. Memory that is no library does not matter."""
    said = child(
        """
        import _ctypes, mmap, shutil, tempfile
        copy = Path(tempfile.mkdtemp(), "gone.so")
        shutil.copy(_ctypes.__file__, copy)
        plain = tempfile.TemporaryFile()
        plain.write(bytes(4096))
        plain.flush()
        kept = mmap.mmap(plain.fileno(), 4096)
        ctypes.CDLL(str(copy))
        copy.unlink()
        try:
            Engine()
        except HwprofError as error:
            end(error=error.message, path=str(copy))
        """
    )
    assert said["path"] in said["error"]
