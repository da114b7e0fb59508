"""Intel's files: counts small enough to compute with by hand, and what every metric must make of them."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.hardware.catalogue import Catalogue, catalogue
from hwprof.hardware.metrics import definition, vocabulary

XEONS = ("intel-skylake-x", "intel-ice-lake-sp", "intel-sapphire-rapids", "intel-granite-rapids")
PERFORMANCE_CORES = ("intel-golden-cove", "intel-redwood-cove", "intel-lion-cove")
EFFICIENCY_CORES = ("intel-gracemont", "intel-crestmont", "intel-skymont")
METRICS_REGISTER = (*XEONS[1:], *PERFORMANCE_CORES)
LEVEL_1 = ("topdown_retiring", "topdown_bad_speculation", "topdown_frontend", "topdown_backend")

# One million cycles, two million instructions, two milliseconds.
COMMON = {"cycles": 1_000_000, "instructions": 2_000_000, "counted-time": 2_000_000}

BIG_CORE = COMMON | {
    "l1d.replacement": 60_000,
    "mem_load_retired.l1_miss": 50_000,
    "mem_inst_retired.all_loads": 500_000,
    "l2_rqsts.all_code_rd": 4_000,
    "l2_rqsts.miss": 8_000,
    "l2_rqsts.references": 80_000,
    "longest_lat_cache.miss": 2_000,
    "longest_lat_cache.reference": 8_000,
    "memory_activity.stalls_l1d_miss": 150_000,
    "memory_activity.stalls_l2_miss": 100_000,
    "memory_activity.stalls_l3_miss": 60_000,
    "dtlb_load_misses.walk_completed": 400,
    "dtlb_store_misses.walk_completed": 100,
    "itlb_misses.walk_completed": 100,
    "dtlb_load_misses.walk_active": 20_000,
    "dtlb_store_misses.walk_active": 5_000,
}
BIG_CORE_VALUES = {
    "l1d_mpki": 30.0,
    "l1d_miss_ratio": 10.0,
    "l1i_mpki": 2.0,
    "l2_mpki": 4.0,
    "l2_miss_ratio": 10.0,
    "llc_mpki": 1.0,
    "llc_miss_ratio": 25.0,
    "memory_stalls": 15.0,
    "l3_bound_stalls": 4.0,
    "dtlb_mpki": 0.25,
    "itlb_mpki": 0.05,
    "dtlb_walk_cycles": 2.5,
}
# Skylake and Ice Lake have other names for some.
BEFORE_SAPPHIRE_RAPIDS = {
    "icache_64b.iftag_miss": 4_000,
    "cycle_activity.stalls_l1d_miss": 150_000,
    "cycle_activity.stalls_l2_miss": 100_000,
    "cycle_activity.stalls_l3_miss": 60_000,
}

# In millions. Single: 16 + 4 × 26 + 8 × 34 + 16 × 5 = 472; double: 4 + 2 × 4 + 4 × 6 + 8 × 5 = 76; 548 in 2 ms.
AVX_512 = {
    "fp_arith_inst_retired.scalar_single": 16_000_000,
    "fp_arith_inst_retired.128b_packed_single": 26_000_000,
    "fp_arith_inst_retired.256b_packed_single": 34_000_000,
    "fp_arith_inst_retired.512b_packed_single": 5_000_000,
    "fp_arith_inst_retired.scalar_double": 4_000_000,
    "fp_arith_inst_retired.128b_packed_double": 4_000_000,
    "fp_arith_inst_retired.256b_packed_double": 6_000_000,
    "fp_arith_inst_retired.512b_packed_double": 5_000_000,
    "fp_arith_inst_retired.scalar": 20_000_000,
    "fp_arith_inst_retired.4_flops": 32_000_000,
    "fp_arith_inst_retired.8_flops": 39_000_000,
    "fp_arith_inst_retired.vector": 80_000_000,
}
AVX_512_VALUES = {
    "counted_flops": 548e6,
    "counted_gflops": 274.0,
    "counted_gflops_fp32": 236.0,
    "counted_gflops_fp64": 38.0,
    "vector_fp_share": 80.0,
    "vector_scalar": 20.0,
    "vector_128": 30.0,
    "vector_256": 40.0,
    "vector_512": 10.0,
}
# In millions. Single: 10 + 4 × 20 + 8 × 21 = 258; double: 2 + 2 × 4 + 4 × 3 = 22.
AVX_2 = {
    "scalar_single": 10_000_000,
    "128b_packed_single": 20_000_000,
    "256b_packed_single": 21_000_000,
    "scalar_double": 2_000_000,
    "128b_packed_double": 4_000_000,
    "256b_packed_double": 3_000_000,
    "scalar": 12_000_000,
    "4_flops": 23_000_000,
    "vector": 48_000_000,
    "vector_128b": 24_000_000,
    "vector_256b": 24_000_000,
}
AVX_2_FLOPS = {
    "counted_flops": 280e6,
    "counted_gflops": 140.0,
    "counted_gflops_fp32": 129.0,
    "counted_gflops_fp64": 11.0,
}
AVX_2_VALUES = AVX_2_FLOPS | {"vector_fp_share": 80.0, "vector_scalar": 20.0, "vector_128": 40.0, "vector_256": 40.0}

# 1 + 2 × 2 + 8 × 3 + 16 × 4 + 32 × 5 = 253 million
HALF_AND_MATRICES = {
    "fp_arith_inst_retired2.scalar_half": 1_000_000,
    "fp_arith_inst_retired2.complex_scalar_half": 2_000_000,
    "fp_arith_inst_retired2.128b_packed_half": 3_000_000,
    "fp_arith_inst_retired2.256b_packed_half": 4_000_000,
    "fp_arith_inst_retired2.512b_packed_half": 5_000_000,
    "exe.amx_busy": 350_000,
}
HALF_AND_MATRICES_VALUES = {"counted_gflops_fp16": 126.5, "amx_busy": 35.0}
VNNI = {"int_vec_retired.vnni_128": 30_000, "int_vec_retired.vnni_256": 10_000}
VNNI_VALUES = {"vnni_share": 2.0}

# Six million slots, of which the front end gave up one in a hundred after flushes.
SLOTS = {
    "slots": 6_000_000,
    "topdown-retiring": 2_400_000,
    "topdown-bad-spec": 300_000,
    "topdown-fe-bound": 900_000,
    "topdown-be-bound": 2_400_000,
    "topdown-heavy-ops": 300_000,
    "topdown-br-mispredict": 240_000,
    "topdown-fetch-lat": 360_000,
    "topdown-mem-bound": 1_500_000,
    "int_misc.uop_dropping": 60_000,
}
SLOTS_VALUES = {
    "topdown_retiring": 40.0,
    "topdown_bad_speculation": 6.0,
    "topdown_frontend": 14.0,
    "topdown_backend": 40.0,
    "topdown_memory": 25.0,
    "topdown_core": 15.0,
    "topdown_fetch_latency": 5.0,
    "topdown_fetch_bandwidth": 9.0,
    "topdown_branch_mispredict": 4.0,
    "topdown_machine_clears": 2.0,
    "topdown_light": 35.0,
    "topdown_heavy": 5.0,
}

LINES = {"ocr.reads_to_core.dram": 5_000, "ocr.demand_data_rd.dram": 5_000}
LINES_VALUES = {"dram_gbytes": 0.16, "dram_read_mpki": 2.5}
CHANNELS = {"unc_m_cas_count.rd": 100_000, "unc_m_cas_count.wr": 50_000}
CHANNELS_VALUES = {"uncore_dram_read_gbytes": 3.2, "uncore_dram_write_gbytes": 1.6, "uncore_dram_gbytes": 4.8}

SMALL_CORE = COMMON | {
    "mem_load_uops_retired.l1_miss": 50_000,
    "mem_load_uops_retired.l2_miss": 5_000,
    "mem_load_uops_retired.dram_hit": 5_000,
    "mem_uops_retired.all_loads": 500_000,
    "icache.misses": 4_000,
    "longest_lat_cache.miss": 2_000,
    "longest_lat_cache.reference": 8_000,
    "mem_bound_stalls_load.all": 150_000,
    "dtlb_load_misses.walk_completed": 400,
    "dtlb_store_misses.walk_completed": 100,
    "itlb_misses.walk_completed": 100,
    "fp_flops_retired.all": 280_000_000,
    "fp_flops_retired.fp32": 258_000_000,
    "fp_flops_retired.fp64": 22_000_000,
    "ocr.demand_data_rd.dram": 5_000,
}
SMALL_CORE_VALUES = {
    "l1d_mpki": 25.0,
    "l1d_miss_ratio": 10.0,
    "l1i_mpki": 2.0,
    "l2_mpki": 4.0,
    "l2_miss_ratio": 10.0,
    "llc_mpki": 1.0,
    "llc_miss_ratio": 25.0,
    "memory_stalls": 15.0,
    "l3_bound_stalls": 4.0,
    "dtlb_mpki": 0.25,
    "itlb_mpki": 0.05,
    "topdown_retiring": 40.0,
    "topdown_bad_speculation": 5.0,
    "topdown_frontend": 15.0,
    "topdown_backend": 40.0,
    "topdown_fetch_latency": 5.0,
    "topdown_fetch_bandwidth": 10.0,
    "topdown_branch_mispredict": 4.0,
    "topdown_machine_clears": 1.0,
}


def client(prefix: str) -> dict[str, int]:
    """What every performance core without AVX-512 has; its FLOP events' names begin with ``prefix``."""
    return BIG_CORE | {f"{prefix}.{name}": count for name, count in AVX_2.items()} | VNNI | SLOTS | LINES


CLIENT_VALUES = BIG_CORE_VALUES | AVX_2_VALUES | VNNI_VALUES | SLOTS_VALUES | {"dram_read_mpki": 2.5}
FOURTH_GENERATION = BIG_CORE | AVX_512 | HALF_AND_MATRICES | VNNI | SLOTS | LINES
FOURTH_GENERATION_VALUES = (
    BIG_CORE_VALUES
    | AVX_512_VALUES
    | HALF_AND_MATRICES_VALUES
    | VNNI_VALUES
    | SLOTS_VALUES
    | LINES_VALUES
    | CHANNELS_VALUES
)

CASES: dict[str, tuple[dict[str, int], dict[str, float]]] = {
    # Four slots a cycle, so four million; a recovering cycle loses all four. Its FLOPs are of single precision.
    "intel-skylake-x": (
        BIG_CORE
        | BEFORE_SAPPHIRE_RAPIDS
        | AVX_512
        | CHANNELS
        | {
            "uops_issued.any": 1_700_000,
            "uops_retired.retire_slots": 1_600_000,
            "int_misc.recovery_cycles": 20_000,
            "idq_uops_not_delivered.core": 600_000,
            "offcore_response.all_data_rd.l3_miss_local_dram.snoop_miss_or_no_fwd": 4_000,
            "offcore_response.all_data_rd.l3_miss_remote_dram.snoop_miss_or_no_fwd": 1_000,
        },
        BIG_CORE_VALUES
        | AVX_512_VALUES
        | {"counted_flops": 472e6, "counted_gflops": 236.0}
        | {
            "topdown_retiring": 40.0,
            "topdown_bad_speculation": 4.5,
            "topdown_frontend": 15.0,
            "topdown_backend": 40.5,
        }
        | LINES_VALUES
        | CHANNELS_VALUES,
    ),
    # Five slots of every flush (30,000 of six million) go from bad speculation to the back end. 320,000 of the 500,000
    # cycles in which little executes (of those with two micro-operations, as large a part as retires) are the memory's.
    "intel-ice-lake-sp": (
        BIG_CORE
        | BEFORE_SAPPHIRE_RAPIDS
        | AVX_512
        | SLOTS
        | LINES
        | CHANNELS
        | {"l2_lines_in.all": 8_000, "mem_load_retired.l2_miss": 5_000, "int_misc.clears_count": 6_000}
        | {
            "cycle_activity.stalls_mem_any": 300_000,
            "cycle_activity.stalls_total": 340_000,
            "exe_activity.1_ports_util": 60_000,
            "exe_activity.2_ports_util": 200_000,
            "exe_activity.bound_on_stores": 20_000,
        },
        BIG_CORE_VALUES
        | AVX_512_VALUES
        | {
            "topdown_retiring": 40.0,
            "topdown_bad_speculation": 5.5,
            "topdown_frontend": 14.0,
            "topdown_backend": 40.5,
            "topdown_memory": 25.92,
            "topdown_core": 14.58,
        }
        | LINES_VALUES
        | CHANNELS_VALUES,
    ),
    "intel-sapphire-rapids": (FOURTH_GENERATION | CHANNELS, FOURTH_GENERATION_VALUES),
    "intel-granite-rapids": (
        FOURTH_GENERATION
        | {
            "unc_m_cas_count_sch0.rd": 60_000,
            "unc_m_cas_count_sch1.rd": 40_000,
            "unc_m_cas_count_sch0.wr": 20_000,
            "unc_m_cas_count_sch1.wr": 30_000,
        },
        FOURTH_GENERATION_VALUES,
    ),
    "intel-golden-cove": (
        client("fp_arith_inst_retired") | {"unc_m_cas_count_rd": 100_000, "unc_m_cas_count_wr": 50_000},
        CLIENT_VALUES | CHANNELS_VALUES,
    ),
    # Chunks of 32 bytes.
    "intel-redwood-cove": (
        client("fp_arith_inst_retired") | {"unc_m_rd_data": 200_000, "unc_m_wr_data": 100_000},
        CLIENT_VALUES | CHANNELS_VALUES,
    ),
    "intel-lion-cove": (
        client("fp_arith_ops_retired")
        | {
            "l1d.l1_replacement": 60_000,
            "memory_stalls.l2": 50_000,
            "memory_stalls.l3": 40_000,
            "memory_stalls.mem": 60_000,
            "unc_m_total_data": 300_000,
        },
        CLIENT_VALUES | {"uncore_dram_gbytes": 4.8},
    ),
    # Five slots a cycle; what is lost to wrong speculation is what nothing else accounts for.
    "intel-gracemont": (
        SMALL_CORE
        | {
            "mem_bound_stalls.load": 150_000,
            "mem_bound_stalls.load_llc_hit": 40_000,
            "topdown_retiring.all": 2_000_000,
            "topdown_fe_bound.all": 750_000,
            "topdown_be_bound.all": 2_000_000,
            "topdown_fe_bound.frontend_latency": 250_000,
            "topdown_fe_bound.frontend_bandwidth": 500_000,
            "topdown_bad_speculation.mispredict": 200_000,
            "topdown_bad_speculation.machine_clears": 50_000,
        },
        SMALL_CORE_VALUES | {"dram_read_mpki": 2.5},
    ),
    # Six slots a cycle.
    "intel-crestmont": (
        SMALL_CORE
        | {
            "mem_bound_stalls_load.llc_hit": 40_000,
            "topdown_retiring.all": 2_400_000,
            "topdown_fe_bound.all": 900_000,
            "topdown_be_bound.all": 2_400_000,
            "topdown_bad_speculation.all": 300_000,
            "topdown_fe_bound.frontend_latency": 300_000,
            "topdown_fe_bound.frontend_bandwidth": 600_000,
            "topdown_bad_speculation.mispredict": 240_000,
            "topdown_bad_speculation.machine_clears": 60_000,
        },
        SMALL_CORE_VALUES | AVX_2_FLOPS | {"dram_read_mpki": 2.5},
    ),
    # Eight slots a cycle.
    "intel-skymont": (
        SMALL_CORE
        | {
            "l2_request.miss": 8_000,
            "l2_request.hit": 72_000,
            "mem_bound_stalls_load.l2_miss": 100_000,
            "mem_bound_stalls_load.llc_miss": 60_000,
            "fp_inst_retired.32b_sp": 10_000,
            "fp_inst_retired.64b_dp": 10_000,
            "fp_inst_retired.128b_sp": 20_000,
            "fp_inst_retired.128b_dp": 20_000,
            "fp_inst_retired.256b_sp": 30_000,
            "fp_inst_retired.256b_dp": 10_000,
            "fp_inst_retired.all": 100_000,
            "topdown_retiring.all_p": 3_200_000,
            "topdown_fe_bound.all_p": 1_200_000,
            "topdown_be_bound.all_p": 3_200_000,
            "topdown_bad_speculation.all_p": 400_000,
            "topdown_fe_bound.frontend_latency": 400_000,
            "topdown_fe_bound.frontend_bandwidth": 800_000,
            "topdown_bad_speculation.mispredict": 320_000,
            "topdown_bad_speculation.machine_clears": 80_000,
        },
        SMALL_CORE_VALUES | AVX_2_VALUES,
    ),
}


def value(file: Catalogue, metric: str, counts: dict[str, int]) -> float:
    """The metric as a run computes it."""
    return evaluated(metric, [("cpu", file)], counts)


def evaluated(metric: str, kinds: list[tuple[str, Catalogue]], counts: dict[str, int]) -> float:
    """The metric over one or several kinds of core."""
    name = next(name for name in vocabulary() if name.name == metric)
    elsewhere = frozenset({"counted-time"})
    formula = definition(name, [(pmu, file.recipes[metric]) for pmu, file in kinds], elsewhere).formula
    return float(pl.DataFrame(counts).select(pl.sql_expr(formula)).item())


def umask(file: Catalogue, event: str) -> int:
    """The unit mask in the event's code."""
    terms = dict(term.split("=") for term in (file.named()[event].code or "").split(","))
    return int(terms["umask"], 0)


@pytest.mark.parametrize(("file", "metric"), [(file, metric) for file in CASES for metric in catalogue(file).recipes])
def test_every_metric_of_counts_computed_by_hand(file: str, metric: str) -> None:
    counts, expected = CASES[file]
    assert value(catalogue(file), metric, counts) == pytest.approx(expected[metric])


@pytest.mark.parametrize("file", CASES)
def test_nothing_is_expected_that_the_file_has_not(file: str) -> None:
    assert set(CASES[file][1]) == set(catalogue(file).recipes)


@pytest.mark.parametrize("file", CASES)
def test_slots_add_up(file: str) -> None:
    shares = [value(catalogue(file), metric, CASES[file][0]) for metric in LEVEL_1]
    assert sum(shares) == pytest.approx(100)


@pytest.mark.parametrize("file", METRICS_REGISTER[1:])
def test_the_second_level_splits_the_first(file: str) -> None:
    part = {metric: value(catalogue(file), metric, CASES[file][0]) for metric in SLOTS_VALUES}
    assert part["topdown_memory"] + part["topdown_core"] == pytest.approx(part["topdown_backend"])
    assert part["topdown_light"] + part["topdown_heavy"] == pytest.approx(part["topdown_retiring"])
    fetching = part["topdown_fetch_latency"] + part["topdown_fetch_bandwidth"]
    assert fetching == pytest.approx(part["topdown_frontend"])
    flushed = part["topdown_branch_mispredict"] + part["topdown_machine_clears"]
    assert flushed == pytest.approx(part["topdown_bad_speculation"])


@pytest.mark.parametrize("file", XEONS)
def test_ten_scalar_and_five_512_bit_instructions_are_ninety_operations(file: str) -> None:
    counts = dict.fromkeys(AVX_512, 0) | {
        "fp_arith_inst_retired.scalar_single": 10,
        "fp_arith_inst_retired.scalar": 10,
        "fp_arith_inst_retired.512b_packed_single": 5,
        "fp_arith_inst_retired.vector": 5,
    }
    assert value(catalogue(file), "counted_flops", counts) == 90
    assert value(catalogue(file), "vector_512", counts) == pytest.approx(100 / 3)


@pytest.mark.parametrize("file", [*XEONS, *PERFORMANCE_CORES])
def test_events_of_several_widths_have_the_masks_of_their_parts(file: str) -> None:
    """Intel's lists for Skylake-X give 8_FLOPS the mask of 4_FLOPS: a formula with it would be silently wrong."""
    content = catalogue(file)
    prefix = "fp_arith_ops_retired" if file == "intel-lion-cove" else "fp_arith_inst_retired"
    parts = {
        "scalar": ("scalar_single", "scalar_double"),
        "4_flops": ("128b_packed_single", "256b_packed_double"),
        "8_flops": ("256b_packed_single", "512b_packed_double"),
        "vector_128b": ("128b_packed_single", "128b_packed_double"),
        "vector_256b": ("256b_packed_single", "256b_packed_double"),
    }
    there = [name for name in parts if f"{prefix}.{name}" in content.named()]
    assert "scalar" in there
    for name in there:
        single, double = (umask(content, f"{prefix}.{part}") for part in parts[name])
        assert umask(content, f"{prefix}.{name}") == single | double, name
    packed = [name for name in content.named() if name.startswith(prefix) and "b_packed" in name]
    assert all(umask(content, name) & umask(content, f"{prefix}.vector") for name in packed)
    assert not umask(content, f"{prefix}.scalar") & umask(content, f"{prefix}.vector")


@pytest.mark.parametrize("file", METRICS_REGISTER)
def test_what_the_metrics_register_tells_follows_the_slots_and_takes_no_counter(file: str) -> None:
    content = catalogue(file)
    assert content.processor is not None and "slots" in content.processor.fixed
    told = [event for event in content.events if event.name.startswith("topdown-")]
    assert len(told) >= 4
    assert all(event.leader == "slots" and event.counters == 0 for event in told)
    assert content.named()["slots"].leader is None


@pytest.mark.parametrize("file", CASES)
def test_memory_controllers_are_charged_to_no_thread(file: str) -> None:
    """They stand with one kind of core only, or a hybrid processor would count them twice."""
    outside = [event for event in catalogue(file).events if event.pmu is not None]
    assert all(event.scope == "socket" for event in outside)
    assert bool(outside) == (file not in EFFICIENCY_CORES)


def test_kinds_of_core_are_summed_before_they_are_divided() -> None:
    """Two fifths of six million slots and three fifths of five million are 5.4 of 11 million."""
    kinds = [("cpu_core", catalogue("intel-golden-cove")), ("cpu_atom", catalogue("intel-gracemont"))]
    counts = {f"cpu_core/{name}/": count for name, count in SLOTS.items()} | {
        "cpu_atom/cycles/": 1_000_000,
        "cpu_atom/topdown_retiring.all/": 3_000_000,
    }
    assert evaluated("topdown_retiring", kinds, counts) == pytest.approx(100 * 5.4 / 11)


def test_operations_of_both_kinds_of_core_add_up() -> None:
    kinds = [("cpu_core", catalogue("intel-redwood-cove")), ("cpu_atom", catalogue("intel-crestmont"))]
    counts = {f"cpu_core/fp_arith_inst_retired.{name}/": count for name, count in AVX_2.items()} | {
        "cpu_atom/fp_flops_retired.all/": 20_000_000,
        "counted-time": 2_000_000,
    }
    assert evaluated("counted_gflops", kinds, counts) == pytest.approx(150)
