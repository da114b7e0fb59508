"""Do samples find their layer, their name, and the shares that perf finds? Proofs on real models.

    python -m scripts.benchmarks.sampled [--models yolov8n yolov7] [--seconds 12] [--output results/sampled.md]

`hwprof collect` runs below `perf record`: both sample the same threads of the same run by processor time, each at its
own frequency. Looked at is the inference of all iterations after warm-up.

Layers: the share of its samples that have a leaf layer, and the share that have any module of the model: what a block
does between its leaves, such as a residual addition or decoding boxes, is that block's own. The model as a whole is no
module here.

Shares: by function, which is the same for both where it begins at the same address, and by library; the z of the
difference of two binomial shares, and chi-square over all functions with at least 20 samples on both sides together
(the rest is one class). As both sample at even distances of the same time, they differ by less than independent draws
would. A library that one of the two has hardly any names for is compared as a whole (libgomp is stripped: hwprof knows
its functions by their code, perf does not), and so is a library's procedure linkage table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
import polars as pl

from collectors.shared.symbols.jit import PERF_MAP
from hwprof.analysis.iterations import select
from hwprof.analysis.sampled_kernels import WAITING_DOMAIN, sampled
from hwprof.analysis.samples import attribute_samples, inference_spans
from hwprof.analysis.timeline import NONE, Timeline
from hwprof.run.directory import RunDirectory
from scripts.benchmarks import perf_samples
from scripts.benchmarks.tables import Part, Table, write

FREQUENCY_HZ: Final = 997
"""perf's; hwprof takes 999 by default: neither stays in step with the other."""

SIZE: Final = 640
PASS: Final = "measure"  # does as many iterations as it is told
SECONDS_AN_ITERATION: Final = {"yolov8n": 0.2, "yolov7": 1.4}  # roughly, of the sample images
FEWEST: Final = 20
SHOWN: Final = 12
AROUND: Final = "none: around the model's forward"
PLT: Final = ".plt"
HARDLY: Final = 0.05
"""A library with names for fewer of its samples is compared as a whole."""


@dataclass(frozen=True)
class Proof:
    """The samples of the inference after warm-up: hwprof's with all that is known of them, and perf's."""

    model: str
    ours: pl.DataFrame
    perfs: pl.DataFrame
    lost: int


def measure(model: str, seconds: float) -> Proof:
    """One run below perf."""
    iterations = max(4, round(seconds / SECONDS_AN_ITERATION.get(model, 1.0)))
    with tempfile.TemporaryDirectory() as folder:
        root, data = Path(folder), Path(folder) / "perf.data"
        command = [
            *(sys.executable, "-m", "hwprof", "collect", "--model", model, "--imgsz", str(SIZE)),
            *("--passes", PASS, "--sample-passes", PASS, "--collectors", "sampler"),
            *("--iterations", str(iterations), "--output", folder),
        ]
        perf_samples.record(command, FREQUENCY_HZ, data, root)
        run = RunDirectory.latest(root)
        record = run.find_pass(PASS)
        assert record is not None and record.pid is not None
        (collector,) = [found for found in record.collectors if found.name == "sampler"]
        assert collector.state == "ran", collector.reason
        perfs = perf_samples.read(data, record.pid, run.path / "raw" / PASS / "sampler" / PERF_MAP)
        spans, layers, kernels = run.read("spans"), run.read("layers"), run.read("kernels")
        kept = select(record.iterations, disturbed_too=True).all
        known = kernels.select(code_range="kernel", start=pl.col("address").cast(pl.UInt64), library="library")
        types = layers.select(layer="path", type="type")
        ours = (
            sampled(attribute_samples(run.read("samples"), spans, layers), kernels, kept)
            .join(known, on="code_range", how="left")
            .with_columns(pl.col("layer", "module").cast(pl.String))
            .join(types, on="layer", how="left")
        )
        windows = inference_spans(spans.filter(pl.col("iteration").is_in(list(kept))), layers)
        perfs = perfs.sort("time_ns")
        inside = Timeline.of(windows).at(perfs["time_ns"].to_numpy()) != NONE
        return Proof(model, ours, perfs.filter(pl.Series(inside)), collector.detail["lost"])


def coverage(proof: Proof) -> list[str]:
    """The row of a model: how many samples, and which shares of them have what."""
    ours = proof.ours
    convolutions = ours.filter((pl.col("code") == "jit") & pl.col("name").str.contains("conv"))
    elsewhere = convolutions.filter(~pl.col("type").str.starts_with("Conv").fill_null(False))
    return [
        proof.model,
        f"{ours.height:,}",
        str(proof.lost),
        _percent(ours["type"].is_not_null()),
        _percent(ours["module"].is_not_null()),
        _percent(ours["name"].is_not_null()),
        _percent(proof.perfs["name"].is_not_null()),
        f"{convolutions.height:,}",
        f"{elsewhere.height:,}",
    ]


def between(proof: Proof) -> list[list[str]]:
    """What the samples without a leaf layer were doing: by module, the most first."""
    rest = proof.ours.filter(pl.col("type").is_null())
    waiting = pl.col("code") == WAITING_DOMAIN
    working = pl.col("name").filter(~waiting).drop_nulls().mode().sort().first()
    by_module = rest.group_by("module").agg(pl.len(), waiting.mean().alias("waiting"), working)
    rows = by_module.sort("len", "module", descending=[True, False]).head(SHOWN // 2)
    return [
        [proof.model, module or AROUND, f"{count / proof.ours.height:.2%}", f"{waiting:.0%}", name or ""]
        for module, count, waiting, name in rows.iter_rows()
    ]


def compared(proof: Proof, by_library: bool) -> pl.DataFrame:
    """One row a function (or library), most samples first: ``label``, ``ours`` and ``perfs`` samples, ``z``."""
    nameless = {library for frame in (proof.ours, proof.perfs) for library in _nameless(frame)}
    place = pl.col("library") if by_library else _function(nameless)
    label = pl.format("{} ({})", "name", "library")
    ours, perfs = (
        frame.group_by(key=place).agg(pl.len().cast(pl.Int64).alias(side), label.first().alias(f"label_{side}"))
        for side, frame in (("ours", proof.ours), ("perfs", proof.perfs))
    )
    here, there = proof.ours.height, proof.perfs.height
    pooled = (pl.col("ours") + pl.col("perfs")) / (here + there)
    error = (pooled * (1 - pooled) * (1 / here + 1 / there)).sqrt()
    whole = pl.lit(by_library) | pl.col("key").is_in(list(nameless))
    named = pl.when(whole).then(pl.col("key")).otherwise(pl.coalesce("label_ours", "label_perfs", "key"))
    return (
        ours.join(perfs, on="key", how="full", coalesce=True)
        .with_columns(pl.col("ours", "perfs").fill_null(0))
        .with_columns(label=named, z=(pl.col("ours") / here - pl.col("perfs") / there) / error)
        .sort("ours", "key", descending=[True, False])
    )


def _nameless(samples: pl.DataFrame) -> list[str]:
    """The libraries in which hardly any sample has a name."""
    named = samples.group_by("library").agg(pl.col("name").is_not_null().mean())
    return named.filter(pl.col("name") < HARDLY)["library"].to_list()


def _function(nameless: set[str]) -> pl.Expr:
    """Where it begins; the kernel's functions have no address: their names, which are the same for both."""
    return (
        pl.when(pl.col("library").is_in(list(nameless)))
        .then(pl.col("library"))
        .when((pl.col("name") == PLT) | pl.col("name").str.ends_with("@plt"))
        .then(pl.format("{} in {}", pl.lit(PLT), pl.col("library")))
        .when(pl.col("start").is_not_null())
        .then(pl.format("{}", pl.col("start")))
        .otherwise(pl.format("{} in {}", pl.col("name").fill_null("no name"), pl.col("library")))
    )


def chi_square(rows: pl.DataFrame) -> tuple[float, int, float]:
    """Chi-square of both columns of counts, its degrees of freedom, and the probability of as much by chance (by Wilson
    and Hilferty's approximation)."""
    large = pl.col("ours") + pl.col("perfs") >= FEWEST
    counts = rows.filter(large).select("ours", "perfs").to_numpy()
    rest = rows.filter(~large).select(pl.col("ours", "perfs").sum()).to_numpy()
    table = np.concatenate([counts, rest]) if rest.sum() else counts
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    value, freedom = float(((table - expected) ** 2 / expected).sum()), len(table) - 1
    spread = 2 / (9 * freedom)
    z = ((value / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5
    return value, freedom, 1 - NormalDist().cdf(z)


def agreement(proof: Proof, rows: pl.DataFrame, what: str) -> list[str]:
    """The row of a comparison: how large the differences are beside what chance makes of them."""
    large = rows.filter(pl.col("ours") + pl.col("perfs") >= FEWEST)
    value, freedom, probability = chi_square(rows)
    beyond = large.filter(pl.col("z").abs() > 2).height
    worst = large.sort(pl.col("z").abs(), descending=True).row(0, named=True)
    shares = large.select("ours", "perfs").to_numpy() / [proof.ours.height, proof.perfs.height]
    return [
        proof.model,
        what,
        f"{proof.ours.height:,} / {proof.perfs.height:,}",
        f"{large.height}",
        f"{beyond} ({0.0455 * large.height:.1f})",
        f"{worst['z']:+.1f} {worst['label']}",
        f"{100 * np.abs(shares[:, 0] - shares[:, 1]).max():.2f}",
        f"{value:.0f} / {freedom}",
        f"{probability:.2f}",
    ]


def largest(proof: Proof, rows: pl.DataFrame) -> list[list[str]]:
    """The largest functions with both shares."""
    return [
        [
            proof.model,
            row["label"],
            _share(row["ours"], proof.ours.height),
            _share(row["perfs"], proof.perfs.height),
            f"{row['z']:+.1f}",
        ]
        for row in rows.head(SHOWN).iter_rows(named=True)
    ]


def _share(count: int, whole: int) -> str:
    share = count / whole
    return f"{share:.2%} ± {(share * (1 - share) / whole) ** 0.5:.2%}"


def _percent(found: pl.Series) -> str:
    return f"{int(found.sum()) / len(found):.2%}"


def report(proofs: Sequence[Proof]) -> Table:
    """All of it as tables."""
    by_function = [(proof, compared(proof, by_library=False)) for proof in proofs]
    by_library = [(proof, compared(proof, by_library=True)) for proof in proofs]
    pairs = [agreement(proof, rows, "function") for proof, rows in by_function]
    pairs += [agreement(proof, rows, "library") for proof, rows in by_library]
    return Table(
        title="Samples of real models: layers, names, and perf's shares",
        columns=[
            "model, 640",
            "samples",
            "lost",
            "leaf layer",
            "module",
            "name",
            "name, perf",
            "JIT conv. kernels",
            "of these not in a Conv",
        ],
        rows=[coverage(proof) for proof in proofs],
        note=str(__doc__),
        further=(
            Part(
                "Samples without a leaf layer",
                ["model", "innermost module", "of all samples", "waiting in OpenMP", "else most often in"],
                [row for proof in proofs for row in between(proof)],
            ),
            Part(
                "Agreement with perf record on the same run",
                [
                    "model",
                    "by",
                    "samples, hwprof / perf",
                    "compared",
                    "beyond 2 σ (by chance)",
                    "largest z",
                    "largest difference, points",
                    "χ² / degrees",
                    "p",
                ],
                pairs,
            ),
            Part(
                "The largest functions",
                ["model", "function", "hwprof", "perf", "z"],
                [row for proof, rows in by_function for row in largest(proof, rows)],
            ),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["yolov8n", "yolov7"])
    parser.add_argument("--seconds", type=float, default=12, help="of iterations, roughly")
    parser.add_argument("--output", type=Path, default=Path("results/sampled.md"))
    arguments = parser.parse_args()
    try:
        proofs = [measure(model, arguments.seconds) for model in arguments.models]
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} is not installed")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} failed ({error.returncode})")
    write(report(proofs), arguments.output)


if __name__ == "__main__":
    main()
