"""Names as a person reads them: real ones of PyTorch, oneDNN and MKL, constructed ones, and anything at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.symbols import demangle as demangling
from collectors.shared.symbols.demangle import demangle
from collectors.shared.symbols.domains import Domain, domain_of
from collectors.shared.symbols.mangled import names_in
from collectors.shared.symbols.shorten import PARALLEL, shorten

NAMES = Path(__file__).parents[2] / "fixtures" / "symbols" / "names.tsv"
"""Symbols and names: where 90 operators of PyTorch 2.13 spent their time, and some functions of each kind beside."""

REAL = [tuple(line.split("\t")) for line in NAMES.read_text().splitlines()]


@pytest.fixture(scope="module", autouse=True)
def _needs_a_demangler() -> None:
    if demangle("_Z1fv") == "_Z1fv":
        pytest.skip("there is no C++ library that demangles")


@pytest.mark.parametrize(("symbol", "expected"), REAL)
def test_a_real_name_is_short(symbol: str, expected: str) -> None:
    assert shorten(demangle(symbol)) == expected


def test_a_short_name_is_a_path() -> None:
    """No brackets, no arguments: what is left over is named here."""
    odd = [short for _, short in REAL if not re.fullmatch(r"[\w:~.]+(operator\S+)?( \(parallel\))?", short)]
    assert not odd
    assert max(len(short) for _, short in REAL) < 100


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        ("at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)", "at::native::silu_kernel"),
        ("void f<(anonymous namespace)::X<int>, ((2)>(1)), (1<2)>(int (*)(char), std::vector<int> const&)", "f"),
        ("std::vector<int, std::allocator<int> > const& at::sizes<3ul>(at::Tensor const&) const &", "at::sizes"),
        ("a::b(int)::{lambda()#2}::operator()() const::{lambda(float)#1}::operator()(float) const", "a::b"),
        ("a::b(int)::'lambda'(float)::operator()(float) const", "a::b"),
        ("a::Functor::operator()(int) const", "a::Functor::operator()"),
        ("std::basic_ostream<char>& std::operator<< <std::char_traits<char> >(char const*)", "std::operator<<"),
        ("bool a::operator< <int>(a::V<int> const&, a::V<int> const&)", "a::operator<"),
        ("a::V<int>::operator->() const", "a::V::operator->"),
        ("a::V<int>::operator unsigned long() const", "a::V::operator unsigned long"),
        ("operator new[](unsigned long, std::align_val_t)", "operator new[]"),
        ("a::operators_of(int)", "a::operators_of"),
        ("a::b[abi:cxx11](int)", "a::b"),
        ("non-virtual thunk to a::B::~B()", "a::B::~B"),
        ("a::b(int) [clone .isra.0] [clone .cold]", "a::b"),
        ("a::b(int, float, double) [clone ._omp_fn.1]", "a::b" + PARALLEL),
        ("gomp_team_end.part.0", "gomp_team_end"),
        ("a_function._omp_fn.0", "a_function._omp_fn.0"),  # " (parallel)" would be longer
        ("a_function._omp_fn.12", "a_function" + PARALLEL),
        ("memcpy@@GLIBC_2.14", "memcpy"),
        ("__tls_get_addr@plt", "__tls_get_addr"),
        ("jit_avx512_core_brgemm_conv_fwd_kernel_vmm_t", "jit_avx512_core_brgemm_conv_fwd_kernel_vmm_t"),
        ("a<b", "a"),
        ("", ""),
        ("()", "()"),
        ("void (*a::b(int))(char)", "void (*a::b(int))(char)"),  # returns a function: not taken apart
        ("{lambda()#1}", "{lambda()#1}"),
    ],
)
def test_what_makes_a_name_long_is_left_out(full: str, expected: str) -> None:
    assert shorten(full) == expected


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        (
            "void at::internal::invoke_parallel<at::parallel_for<at::native::(anonymous namespace)::cpu_pool<float>"
            "(at::Tensor const&)::{lambda(long, long)#1}>(long, at::native::cpu_pool<float>(at::Tensor const&)::"
            "{lambda(long, long)#1} const&)::{lambda(long, long)#1}>(long) [clone ._omp_fn.0]",
            "at::native::cpu_pool" + PARALLEL,
        ),
        (
            "std::_Function_handler<void (int), a::b(int)::{lambda(int)#1}>::_M_invoke(std::_Any_data const&, int&&)",
            "a::b",
        ),
        (
            "c10::impl::wrap_kernel_functor_unboxed_<c10::impl::detail::WrapFunctionIntoFunctor_<"
            "c10::CompileTimeFunctionPointer<at::Tensor& (at::Tensor&), &(at::wrapper_CPU_relu_(at::Tensor&))>, "
            "at::Tensor&>, at::Tensor& (at::Tensor&)>::call(c10::OperatorKernel*)",
            "at::wrapper_CPU_relu_",
        ),
        ("std::_Function_handler<void (), a::Functor>::_M_invoke(std::_Any_data const&)",
         "std::_Function_handler::_M_invoke"),
    ],
)  # fmt: skip
def test_a_function_that_only_calls_another_has_the_others_name(full: str, expected: str) -> None:
    assert shorten(full) == expected


def test_of_a_name_that_cannot_be_demangled_the_parts_are_read() -> None:
    symbol = (
        "_ZN2at8internal15invoke_parallelIZNS_12parallel_forIZNS_6native12_GLOBAL__N_124_vec_log_softmax_lastdimIdEEvPKT"
        "_PS6_llEUlllE_EEvlllRS7_EUlllE_EEvlllSB_"
    )
    assert names_in(symbol) == [
        "at::internal::invoke_parallel",
        "at::parallel_for",
        "at::native::_vec_log_softmax_lastdim",
    ]
    assert shorten(f"{symbol}._omp_fn.0") == "at::native::_vec_log_softmax_lastdim" + PARALLEL
    assert shorten("_ZGVeN16v_Sleef_expf16_u10") == "Sleef_expf16_u10"
    assert shorten("_Z") == "_Z"
    assert names_in("_ZN99999999at") == []


FRAGMENTS = st.sampled_from(
    ["at::", "native", "(anonymous namespace)::", "{lambda(int)#1}", "operator", "()", "<", ">", "(", ")", ", ", "::",
     " const", "&", "*", "[clone .isra.0]", " [clone ._omp_fn.0]", "operator<<", "->", "void ", "[abi:cxx11]", "std::",
     "_Function_handler", "._omp_fn.3", ".cold", "@plt", "_ZN", "12", "\ue000", "\ue100", "-", "'lambda'", "$_0", "~"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=80), st.lists(FRAGMENTS, max_size=30).map("".join)))
def test_whatever_a_name_is_it_stays_a_name(name: str) -> None:
    short = shorten(name)
    assert bool(short) == bool(name)
    assert len(short) <= len(name)


@given(st.sampled_from([symbol for symbol, _ in REAL]), st.integers(0, 600))
def test_a_name_that_was_cut_short_is_no_error(symbol: str, length: int) -> None:
    full = demangle(symbol)[:length]
    assert len(shorten(full)) <= len(full)


def test_without_a_cpp_library_names_are_as_the_file_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangling, "LIBRARIES", ("libnone.so.0",))
    demangling._demangler.cache_clear()
    try:
        assert demangle("_ZN1a1bEi") == "_ZN1a1bEi"
        assert shorten("_ZN1a1bEi") == "a::b"
    finally:
        demangling._demangler.cache_clear()


@pytest.mark.parametrize(
    ("library", "domain"),
    [
        ("libtorch_cpu.so", Domain.TORCH),
        ("_C.cpython-311-x86_64-linux-gnu.so", Domain.TORCH),
        ("libgomp.so.1", Domain.OPENMP),
        ("libtbb.so.12", Domain.TBB),
        ("libtbbmalloc.so.2", Domain.OTHER),
        ("/opt/onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so", Domain.RUNTIME),
        ("libonnxruntime.so.1.32.0", Domain.RUNTIME),
        ("libopenvino_intel_cpu_plugin.so", Domain.RUNTIME),
        ("libgomp-24e2ab19.so.1.0.0", Domain.OPENMP),
        ("python3.11", Domain.PYTHON),
        ("libpython3.11.so.1.0", Domain.PYTHON),
        ("libm.so.6", Domain.SYSTEM),
        ("libmkl_core.so.2", Domain.TORCH),
        ("libc.so.6", Domain.SYSTEM),
        ("[vdso]", Domain.SYSTEM),
        ("memfd:frida-agent-64.so", Domain.OWN),
        ("_multiarray_umath.cpython-311-x86_64-linux-gnu.so", Domain.OTHER),
        ("libcrypto.so.3", Domain.OTHER),
        ("/x/torch/lib/libtorch_cpu.so", Domain.TORCH),
        ("/tmp/torchinductor_me/qv/cqvgxdd.main.so", Domain.JIT),
        ("/home/python3/libnumba.so", Domain.OTHER),
    ],
)
def test_a_file_says_what_its_code_is_there_for(library: str, domain: Domain) -> None:
    assert domain_of(library) is domain
