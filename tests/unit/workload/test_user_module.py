from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from hwprof.errors import HwprofError, UsageError
from hwprof.workload.factory import build
from hwprof.workload.layer_tables import layer_tables
from hwprof.workload.spec import InputSpec, WorkloadSpec
from tests.support.recorded_stages import RecordedStages

MODELS = """
import contextlib
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.shared = nn.Sequential(nn.ReLU())
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.shared(self.norm(self.first(x))))

def net():
    return Net()

def with_inputs():
    return nn.Bilinear(2, 3, 4), (torch.ones(5, 2), torch.ones(5, 3))

def with_one_input():
    return nn.Linear(2, 3), torch.ones(7, 2)

def scripted():
    return torch.jit.script(Net())

def exported():
    return torch.export.export(nn.Linear(2, 3), (torch.ones(7, 2),)).module(), torch.ones(7, 2)

def of_words():
    return nn.Embedding(5, 2), torch.zeros(1, 3, dtype=torch.int64)

def of_two():
    return nn.Bilinear(2, 3, 4)

class Holder:
    ready = Net()

class Caching(nn.Module):
    def __init__(self):
        super().__init__()
        self.once, self.always, self.cache = nn.Linear(2, 3), nn.LazyLinear(3), None

    def forward(self, x):
        self.cache = self.once(x) if self.cache is None else self.cache
        return self.always(x) + self.cache

def caching():
    return Caching(), torch.ones(7, 2)

class Threaded(nn.Linear):
    def __init__(self, anew):
        super().__init__(2, 3)
        self.anew = anew
        torch.set_num_threads(8)

    def forward(self, x):
        if self.anew:
            torch.set_num_threads(3)
        return super().forward(x)

def threads_when_built():
    return Threaded(False), torch.ones(7, 2)

def threads_when_called():
    return Threaded(True), torch.ones(7, 2)

def broken():
    raise ValueError("bad width\\nsecond line")

def unfit_weights():
    net().load_state_dict({})

def of_a_standard_module():
    import json
    json.loads("x")

def importing():
    import nowhere_to_be_found.inside

def with_a_bad_input():
    return net(), torch.ones(1, 5, 8, 8)

def with_bad_features():
    return nn.Linear(4, 4), torch.ones(3, 5)

def with_bad_names():
    return nn.Sequential(nn.ReLU()), (torch.ones(3, 5), torch.ones(1))

def elsewhere():
    return nn.Linear(4, 4, device="meta"), torch.ones(3, 4)

class Endless(nn.Module):
    def forward(self, x):
        return self.forward(x)

class Keyless(nn.Module):
    def forward(self, x):
        return {}["abc"]

class WithGradients(nn.Linear):
    def __init__(self, *modes):
        super().__init__(3, 3)
        self.modes = modes

    def forward(self, x):
        x = x * 2
        with contextlib.ExitStack() as modes:
            for mode in self.modes:
                modes.enter_context(mode)
            x = x.clone() if len(self.modes) == 2 else x
            loss = super().forward(x).sum()
            loss.backward()
        return loss

def with_gradients():
    return WithGradients(), torch.ones(2, 3)

def with_gradients_of_inference():
    return WithGradients(torch.inference_mode(False)), torch.ones(2, 3)

def with_gradients_turned_on():
    return WithGradients(torch.inference_mode(False), torch.enable_grad()), torch.ones(2, 3)

endless, keyless = Endless, Keyless

class Restless(Net):
    def eval(self):
        raise ValueError("never")

def not_a_model():
    return 3

def forgetful():
    nn.Linear(3, 4)

number = 3
"""


@pytest.fixture(autouse=True)
def _models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The user's module lies in the current folder, which is on nobody's path."""
    (tmp_path / "users_models.py").write_text(MODELS)
    (tmp_path / "users_broken.py").write_text("import nowhere_to_be_found\n")
    (tmp_path / "users_faulty.py").write_text("x = 1\ny = x / 0\n")
    (tmp_path / "users_guarded.py").write_text("def __getattr__(name):\n    raise ValueError(name)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    yield
    for name in ("users_models", "users_broken", "users_faulty", "users_guarded"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["users_models:net", "users_models:Net", "users_models:Holder.ready"])
def test_takes_callables_classes_and_modules(name: str, stages: RecordedStages) -> None:
    workload = build(WorkloadSpec(model=name, inputs=(InputSpec(shape=(2, 3, 8, 8)),), seed=5))
    record = workload.prepare()
    assert (record.name, record.kind, record.parameters, record.batch) == (name, "module", 4 * 27 + 4 + 8, 2)
    assert record.input_shapes == ["2x3x8x8"]
    assert record.weights == "the factory's own (seed 5)"
    workload.iterate(stages, None)
    assert stages.begun == ["inference"]
    assert workload.results() == []


def test_evaluates_and_leaves_the_modules_alone() -> None:
    workload = build(WorkloadSpec(model="users_models:net", inputs=(InputSpec(shape=(1, 3, 8, 8)),)))
    workload.prepare()
    root = workload.modules[""]
    assert not root.training
    assert [name for name, _ in root.named_modules()] == ["", "first", "norm", "shared", "shared.0", "drop"]
    norm = root.get_submodule("norm")
    assert isinstance(norm.running_mean, torch.Tensor) and norm.running_mean.abs().max() == 0


def test_the_seed_decides_weights_and_inputs() -> None:
    def output(seed: int) -> torch.Tensor:
        workload = build(WorkloadSpec(model="users_models:net", inputs=(InputSpec(shape=(1, 3, 8, 8)),), seed=seed))
        workload.prepare()
        (call,) = workload.forwards()
        result: torch.Tensor = call.run()
        return result

    assert torch.equal(output(1), output(1))
    assert not torch.equal(output(1), output(2))


@pytest.mark.parametrize(("name", "shapes"), [("with_inputs", ["5x2", "5x3"]), ("with_one_input", ["7x2"])])
def test_a_factory_may_bring_its_inputs(name: str, shapes: list[str]) -> None:
    workload = build(WorkloadSpec(model=f"users_models:{name}"))
    record = workload.prepare()
    assert (record.input_shapes, record.batch) == (shapes, int(shapes[0][0]))
    ((_, arguments, _),) = workload.forwards()
    assert [float(tensor.mean()) for tensor in arguments] == [1.0] * len(shapes)


def test_the_layers_are_those_of_a_later_call_than_the_first() -> None:
    """As iterations have them, where the first fills caches and lazy modules."""
    workload = build(WorkloadSpec(model="users_models:caching"))
    workload.prepare(values=False)
    table, _ = layer_tables(workload, first_only=True)
    calls = {path: (calls, parameters) for path, calls, parameters in table["path", "calls", "parameters"].rows()}
    assert (calls["once"], calls["always"]) == ((0, 9), (1, 9))


def test_an_exported_model_stays_in_its_mode(stages: RecordedStages) -> None:
    """It refuses ``eval()``."""
    workload = build(WorkloadSpec(model="users_models:exported"))
    assert workload.prepare().input_shapes == ["7x2"]
    workload.iterate(stages, None)


def test_weights_are_loaded(tmp_path: Path) -> None:
    first = build(WorkloadSpec(model="users_models:net", inputs=(InputSpec(shape=(1, 3, 8, 8)),), seed=1))
    first.prepare()
    torch.save(first.modules[""].state_dict(), tmp_path / "w.pt")
    other = build(
        WorkloadSpec(model="users_models:net", inputs=(InputSpec(shape=(1, 3, 8, 8)),), seed=2, weights="w.pt")
    )
    assert other.prepare().weights == "w.pt"
    assert torch.equal(other.modules[""].get_parameter("first.weight"), first.modules[""].get_parameter("first.weight"))


def test_loaded_weights_that_are_no_numbers_are_told(tmp_path: Path) -> None:
    spec = WorkloadSpec(model="users_models:net", inputs=(InputSpec(shape=(1, 3, 8, 8)),), weights="w.pt")
    first = build(WorkloadSpec(model="users_models:net", inputs=spec.inputs))
    assert first.prepare().weights_unsound is None
    state = first.modules[""].state_dict()
    torch.save(state, tmp_path / "w.pt")
    assert build(spec).prepare().weights_unsound is None
    state["first.weight"][0] = math.nan
    torch.save(state, tmp_path / "w.pt")
    assert str(build(spec).prepare().weights_unsound).startswith("1 of 6 tensors of the weights hold NaN")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("users_models:nett", r"users_models has no nett\. Try: did you mean net"),
        ("nowhere_at_all:net", r"there is no Python module nowhere_at_all"),
        ("users_models:number", r"neither a torch module nor callable"),
        (
            "users_models:not_a_model",
            r"gives int, not a torch module\. Try: a factory that returns a torch\.nn\.Module",
        ),
        ("users_models:forgetful", r"gives NoneType, not a torch module\. Try: a return at its end: return model, or"),
        (":net", r"not of the form package.module:factory"),
        ("users_models:", r"not of the form package.module:factory"),
    ],
)
def test_what_does_not_exist_is_a_usage_error(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build(WorkloadSpec(model=name, inputs=(InputSpec(shape=(1, 3, 8, 8)),))).prepare()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("users_models:Restless", r"users_models:Restless: eval\(\) fails: ValueError: never \(users_models.py:\d+\)"),
        ("users_guarded:net", r"looking for net in users_guarded fails: ValueError: net \(users_guarded.py:2\)"),
        ("users_models:broken", r"users_models:broken\(\) fails: ValueError: bad width \(users_models.py:\d+\)"),
        ("users_models:unfit_weights", r"fails: RuntimeError: .*Missing key.* \(users_models.py:\d+\)"),
        ("users_models:of_a_standard_module", r"fails: JSONDecodeError: .* \(users_models.py:\d+\)"),
        ("users_broken:net", r"importing users_broken fails: No module named 'nowhere_to_be_found'"),
        (
            "users_faulty:net",
            r"importing users_faulty fails: ZeroDivisionError: division by zero \(users_faulty.py:2\)",
        ),
    ],
)
def test_what_fails_is_told_in_one_line(name: str, message: str) -> None:
    with pytest.raises(HwprofError, match=message) as caught:
        build(WorkloadSpec(model=name, inputs=(InputSpec(shape=(1, 3, 8, 8)),))).prepare()
    assert caught.value.exit_code == 1
    assert "\n" not in str(caught.value)


def test_a_refused_input_is_told_with_the_models_words() -> None:
    with pytest.raises(HwprofError, match=r"refuses the input 1x5x8x8: .*5 channels.*--input-shape") as caught:
        build(WorkloadSpec(model="users_models:net", inputs=(InputSpec(shape=(1, 5, 8, 8)),))).prepare()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "inputs", "code"),
    [
        ("net", (InputSpec(shape=(1, 5, 8, 8)),), 2),
        ("net", (InputSpec(shape=(1, 3, 8, 8), name="zz"),), 2),
        ("net", (InputSpec(shape=(1, 3, 8, 8), dtype="int64"),), 2),
        ("with_a_bad_input", (), 1),
    ],
)
def test_a_refused_input_is_bad_usage_where_options_gave_it(
    model: str, inputs: tuple[InputSpec, ...], code: int
) -> None:
    with pytest.raises(HwprofError, match="refuses the input") as caught:
        build(WorkloadSpec(model=f"users_models:{model}", inputs=inputs)).prepare()
    assert caught.value.exit_code == code


@pytest.mark.parametrize(("model", "raised"), [("endless", "RecursionError: maximum"), ("keyless", "KeyError: 'abc'")])
def test_an_exception_that_speaks_of_no_input_is_the_models_failure(model: str, raised: str) -> None:
    with pytest.raises(HwprofError, match=f"users_models:{model} raised {raised}.* with the input 1x3x8x8") as caught:
        build(WorkloadSpec(model=f"users_models:{model}", inputs=(InputSpec(shape=(1, 3, 8, 8)),))).prepare()
    assert caught.value.exit_code == 1 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "message", "remedy"),
    [
        ("with_gradients", "does not require grad", "torch.enable_grad()"),
        ("with_gradients_of_inference", "Inference tensors cannot be saved for backward", "clone()"),
    ],
)
def test_what_fails_for_the_mode_that_models_are_called_in_blames_no_input(
    model: str, message: str, remedy: str
) -> None:
    with pytest.raises(HwprofError, match=message) as caught:
        build(WorkloadSpec(model=f"users_models:{model}")).prepare()
    text = str(caught.value)
    assert "torch.inference_mode" in text and "refuses" not in text and "--input" not in text
    assert remedy in (caught.value.remedy or "") and "users_models.py:" in text
    assert caught.value.exit_code == 1 and "\n" not in text


def test_a_forward_that_leaves_the_mode_itself_has_its_gradients(stages: RecordedStages) -> None:
    """As the remedy has it."""
    workload = build(WorkloadSpec(model="users_models:with_gradients_turned_on"))
    workload.prepare()
    workload.iterate(stages, None)


@pytest.mark.parametrize("model", ["users_broken:net", "users_models:importing"])
def test_a_module_that_the_models_code_lacks_comes_with_what_to_install(model: str) -> None:
    with pytest.raises(HwprofError, match="nowhere_to_be_found") as caught:
        build(WorkloadSpec(model=model)).prepare()
    assert "pip install nowhere_to_be_found" in (caught.value.remedy or "") and caught.value.exit_code == 1


def test_without_inputs_it_asks_for_the_shape() -> None:
    with pytest.raises(UsageError, match=r"--input-shape 1,3,224,224"):
        build(WorkloadSpec(model="users_models:net")).prepare()


def test_a_refused_input_is_not_suggested_again() -> None:
    with pytest.raises(HwprofError) as caught:
        build(WorkloadSpec(model="users_models:of_words", inputs=(InputSpec(shape=(1, 3, 224, 224)),))).prepare()
    assert caught.value.remedy is not None
    assert "1,3,224,224" not in caught.value.remedy and "--input input:1x128:int64:0..4" in caught.value.remedy


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        ("with_bad_features", "takes, like 3x4 for input, from the factory users_models:with_bad_features"),
        ("with_bad_names", "inputs that forward(input) takes from the factory users_models:with_bad_names"),
        ("elsewhere", "a model and inputs on the CPU from the factory users_models:elsewhere"),
    ],
)
def test_where_the_factory_gave_the_input_its_line_is_named_and_no_option(model: str, remedy: str) -> None:
    with pytest.raises(HwprofError, match="refuses the input") as caught:
        build(WorkloadSpec(model=f"users_models:{model}")).prepare()
    assert caught.value.exit_code == 1 and caught.value.remedy is not None
    line = MODELS.splitlines().index(f"def {model}():") + 1
    assert remedy in caught.value.remedy and f"(users_models.py:{line})" in caught.value.remedy
    assert "--input" not in caught.value.remedy


def test_what_the_remedy_of_a_refused_input_says_is_taken() -> None:
    with pytest.raises(HwprofError) as caught:
        build(WorkloadSpec(model="users_models:of_words", inputs=(InputSpec(shape=(1, 2)),))).prepare()
    assert caught.value.remedy is not None and caught.value.remedy.endswith(": --input input:1x2:int64:0..4")
    spec = InputSpec(name="input", shape=(1, 2), dtype="int64", range=(0, 4))
    assert build(WorkloadSpec(model="users_models:of_words", inputs=(spec,))).prepare().input_shapes == ["1x2 int64"]


def test_what_hooks_cannot_see_inside_of_is_told() -> None:
    assert build(WorkloadSpec(model="users_models:net", inputs=(InputSpec(shape=(1, 3, 8, 8)),))).prepare().notes == []
    (note,) = (
        build(WorkloadSpec(model="users_models:scripted", inputs=(InputSpec(shape=(1, 3, 8, 8)),))).prepare().notes
    )
    assert note.startswith("RecursiveScriptModule: ")


def test_inputs_of_another_type_say_so() -> None:
    assert build(WorkloadSpec(model="users_models:of_words")).prepare().input_shapes == ["1x3 int64"]
    assert build(WorkloadSpec(model="users_models:with_one_input")).prepare().input_shapes == ["7x2"]


def test_a_refused_input_comes_with_what_forward_wants() -> None:
    with pytest.raises(HwprofError) as caught:
        build(WorkloadSpec(model="users_models:of_two", inputs=(InputSpec(shape=(1, 2)),))).prepare()
    assert caught.value.remedy is not None
    assert "input1" in caught.value.remedy and "input2" in caught.value.remedy and "--imgsz" not in caught.value.remedy


def test_the_current_folder_comes_last_and_a_hidden_module_says_so(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('not this one')\n")
    with pytest.raises(UsageError, match=r"queue has no net: it is /.*queue\.py, which comes before queue\.py here"):
        build(WorkloadSpec(model="queue:net")).prepare()
    assert sys.path[-1] == str(tmp_path)


def test_a_factory_that_is_not_there_comes_with_those_that_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hwprof_test_factories.py").write_text(
        "from pathlib import Path\nfrom torch import nn\nnet = nn.ReLU()\nSIZE = 3\ndef build_lstm(): return net\n"
    )
    (tmp_path / "hwprof_test_empty.py").write_text("SIZE = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name, remedy in (
        ("hwprof_test_factories:nope", "it has net, build_lstm"),
        ("hwprof_test_factories:build_lst", "did you mean build_lstm?"),
        ("hwprof_test_empty:nope", "define a function there that returns a torch module"),
    ):
        with pytest.raises(UsageError) as failure:
            build(WorkloadSpec(model=name, inputs=(InputSpec(shape=(1, 3, 8, 8)),))).prepare()
        assert failure.value.remedy == remedy


@pytest.mark.parametrize(
    ("text", "message", "told"),
    [
        ("def net(width): ...", r"net\(\) fails: TypeError", "without arguments"),
        ("def inner(width): ...\ndef net(): return inner()", r"net\(\) fails: TypeError", None),  # it was entered
        (None, "there is no Python module needy", "PYTHONPATH"),
    ],
)
def test_a_factory_that_wants_arguments_and_one_that_is_elsewhere(
    text: str | None, message: str, told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "needy.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "needy", raising=False)
    with pytest.raises(HwprofError, match=message) as caught:
        build(WorkloadSpec(model="needy:net")).prepare()
    assert (told is None and caught.value.remedy is None) or (told or "-") in (caught.value.remedy or "")


def test_a_torchvision_that_does_not_fit_is_the_doctors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unfit.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(HwprofError, match="importing unfit fails") as caught:
        build(WorkloadSpec(model="unfit:net")).prepare()
    assert "hwprof doctor" in (caught.value.remedy or "")


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
def test_the_threads_that_were_asked_for_are_there_whatever_the_model_sets_when_it_is_built() -> None:
    record = build(WorkloadSpec(model="users_models:threads_when_built", threads=2)).prepare()
    assert (record.threads, torch.get_num_threads(), record.notes) == (2, 2, [])
    assert build(WorkloadSpec(model="users_models:threads_when_built")).prepare().threads == 8, "its own choice"


@pytest.mark.usefixtures("threads")
def test_a_model_that_sets_threads_at_each_call_has_the_last_word_and_it_is_said() -> None:
    record = build(WorkloadSpec(model="users_models:threads_when_called", threads=2)).prepare()
    assert record.threads == 3
    assert record.notes == ["the model's own code sets 3 threads at each call, not 2"]
    assert build(WorkloadSpec(model="users_models:threads_when_called", threads=3)).prepare().notes == []
