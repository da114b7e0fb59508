"""Long names are cut so that rows of a table stay different."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from hwprof.report.text import grid
from hwprof.report.text.figures import ASCII, UNICODE
from hwprof.report.text.grid import Column
from hwprof.report.text.names import shorten_apart

ENCODER = [
    f"encoder.layer.{number}.{part}"
    for number in range(12)
    for part in ("attention.self.query", "attention.self.key", "attention.output.dense", "intermediate.dense",
                 "output.dense", "attention.output.LayerNorm", "output.LayerNorm")
]  # fmt: skip


def test_what_tells_rows_apart_stays() -> None:
    """The number of the layer and the block's name: no cut at one place for all keeps both."""
    dense = [f"encoder.layer.{number}.attention.output.dense" for number in range(12)]
    cut = shorten_apart([*dense, "unattributed"], 24, "…")
    assert cut[12] == "unattributed"
    assert [f".{number}." in shown and shown.endswith("dense") for number, shown in enumerate(cut[:12])] == [True] * 12
    assert len(set(shorten_apart(ENCODER, 24, "…"))) == len(ENCODER)


def test_kernels_of_one_family_stay_different() -> None:
    names = [f"mkl_blas_avx512_sgemm_kernel_{kind}_b1" for kind in ("nocopy_NN", "nocopy_NT", "copy_NN", "copy_TN")]
    cut = shorten_apart(names, 26, "…")
    assert len(set(cut)) == 4
    assert ["NT" in shown for shown in cut] == [False, True, False, False]


def test_a_cut_name_stands_for_no_other_one() -> None:
    """What distinguishes it is in its middle, and its row is the only one that reads like that."""
    kernels = ["jit_avx512_common_1x1_conv_kernel_t", "jit_avx512_common_conv_fwd_kernel_vmm_t"]
    cut = shorten_apart(kernels, 30, "…")
    assert "1x1" in cut[0] and "1x1" not in cut[1]
    paths = [f"model.{number}.rbr_reparam" for number in (102, 103, 104)]
    alone = ["13% model.104.rbr_reparam", "9% model.2.conv"]
    assert shorten_apart(alone, 21, "…")[0] != shorten_apart(alone, 21, "…", paths)[0]
    assert ".104." in shorten_apart(alone, 21, "…", paths)[0]


def test_a_share_and_what_is_a_modules_own_are_not_cut() -> None:
    rows = ["TransformerEncoder (own)", "TransformerEncoder", "Sequential (own)", "LM (own)", "Bottleneck (own)"]
    for width in (12, 14, 17):
        cut = shorten_apart(rows, width, "…")
        assert [shown.endswith(" (own)") for shown in cut] == [row.endswith(" (own)") for row in rows]
        assert len(set(cut)) == len(rows) and max(map(len, cut)) <= width
    (shown,) = shorten_apart(["100% encoder.layer.7.output.dense (own)"], 24, "…")
    assert shown.startswith("100% ") and shown.endswith(" (own)") and len(shown) <= 24


def test_an_indented_row_stays_indented() -> None:
    rows = ["  at::native::AVX512::vectorized_loop2d_silu", "  at::native::AVX512::vectorized_loop2d_mul"]
    cut = shorten_apart(rows, 20, "…")
    assert len(set(cut)) == 2
    assert all(shown.startswith("  ") and len(shown) <= 20 for shown in cut)


Part = st.sampled_from(
    ["encoder", "layer", "model", "0", "1", "12", "attention", "self", "dense", "m", "cv1", "x" * 20]
)
Path = st.builds(".".join, st.lists(Part, min_size=1, max_size=8))


@given(st.lists(st.one_of(Path, st.text(max_size=40)), max_size=40), st.integers(8, 40), st.sampled_from(["…", ".."]))
def test_different_rows_never_read_alike(texts: list[str], width: int, ellipsis: str) -> None:
    cut = shorten_apart(texts, width, ellipsis)
    assert all(len(shown) <= width for shown in cut)
    assert all(shown == text for text, shown in zip(texts, cut, strict=True) if len(text) <= width)
    assert len(set(cut)) == len(set(texts))


LONG = 100_000


@given(
    st.lists(st.sampled_from([".", "a", "a.", "::", " ", "layer.0."]), min_size=1, max_size=4),
    st.integers(0, LONG),
    st.sampled_from(["…", ".."]),
)
@settings(max_examples=10)
def test_names_of_any_length_are_cut_in_no_time(parts: list[str], place: int, ellipsis: str) -> None:
    """As a file's name or a kernel's may be: with time by the square of it, this takes hours."""
    names = ["".join(parts) * (LONG // len("".join(parts))) for _ in range(3)]
    texts = [name[:place] + str(number) + name[place:] for number, name in enumerate(names)]
    cut = shorten_apart([*ENCODER, *texts], 40, ellipsis)
    assert all(len(shown) <= 40 for shown in cut) and len(set(cut)) == len(cut)
    assert cut[: len(ENCODER)] == shorten_apart(ENCODER, 40, ellipsis)


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(1, 7))
def test_in_very_little_room_they_are_cut_all_the_same(texts: list[str], width: int) -> None:
    assert all(len(shown) <= width for shown in shorten_apart(texts, width, "…"))


def test_a_table_of_an_encoders_layers_has_no_two_equal_rows() -> None:
    for glyphs in (UNICODE, ASCII):
        columns = [Column("layer", ENCODER, right=False, least=24), Column("ms", ["1.00"] * len(ENCODER))]
        rows = str(grid.table(grid.fit(columns, 40), glyphs)).splitlines()[2:]
        assert len(rows) == len(set(rows)) == len(ENCODER)
        assert max(map(len, rows)) <= 40


def test_a_column_has_no_more_room_than_it_wants() -> None:
    kernels = [f"at::native::{'very_' * 20}long_{kind}_kernel" for kind in ("silu", "mul")]
    (column,) = grid.fit([Column("kernel", kernels, right=False, least=30, most=60)], 200)
    assert column.width == 60
    rows = str(grid.table([column], UNICODE)).splitlines()[2:]
    assert len(set(rows)) == 2
    assert "silu" in rows[0] and "mul" in rows[1]


def test_a_wide_name_has_the_room_that_it_is_given() -> None:
    """Chinese characters take two cells each."""
    names = ["模型" * 30 + ".第一", "模型" * 30 + ".第二", "short"]
    for width in (24, 25):
        column = Column("layer", names, right=False)
        column.width = width
        rows = str(grid.table([column], UNICODE)).splitlines()[2:]
        assert all(cell_len(row) <= width for row in rows)
        assert len(set(rows)) == 3 and rows[2] == "short"
