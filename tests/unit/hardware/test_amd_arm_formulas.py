"""AMD's and Arm's files: counts small enough to compute with by hand, and what every metric must make of them."""

from __future__ import annotations

import re

import polars as pl
import pytest

from hwprof.hardware.catalogue import Catalogue, catalogue
from hwprof.hardware.metrics import definition, vocabulary

ZEN = ("amd-zen2", "amd-zen3", "amd-zen4", "amd-zen5")
NEOVERSE = ("arm-neoverse-n1", "arm-neoverse-v1", "arm-neoverse-n2", "arm-neoverse-n2-r0p2", "arm-neoverse-v2")
LEVEL_1 = ("topdown_retiring", "topdown_bad_speculation", "topdown_frontend", "topdown_backend", "topdown_smt")

# One million cycles, two million instructions, two milliseconds.
COMMON = {"cycles": 1_000_000, "instructions": 2_000_000, "counted-time": 2_000_000}

ANY_ZEN = COMMON | {
    "fp_ret_sse_avx_ops.all": 64_000_000,
    "ic_cache_fill_l2": 3_000,
    "ic_cache_fill_sys": 1_000,
    "l2_cache_req_stat.ic_dc_miss_in_l2": 8_000,
    "l2_cache_req_stat.ic_dc_hit_in_l2": 72_000,
}
ANY_ZEN_VALUES = {
    "counted_flops": 64e6,
    "counted_gflops": 32.0,
    "l1d_mpki": 30.0,
    "l1d_miss_ratio": 10.0,
    "l1i_mpki": 2.0,
    "l2_mpki": 4.0,
    "l2_miss_ratio": 10.0,
    "dtlb_mpki": 0.25,
    "itlb_mpki": 0.05,
}

# 64 bytes × (1 + 2 + … + 8) × 1000 requests in 2 ms
CHANNELS = {f"dram_channel_data_controller_{channel}": 1000 * (channel + 1) for channel in range(8)}
CHANNELS_VALUES = {"uncore_dram_gbytes": 1.152}

# What Zen 4 (six slots a cycle) and Zen 5 (eight) have in common.
ZEN_4_AND_5 = ANY_ZEN | {
    "fp_ops_retired_by_width.scalar_uops_retired": 100,
    "fp_ops_retired_by_width.pack_128_uops_retired": 200,
    "fp_ops_retired_by_width.pack_256_uops_retired": 300,
    "fp_ops_retired_by_width.pack_512_uops_retired": 400,
    "ls_dmnd_fills_from_sys.all": 60_000,
    "ls_l1_d_tlb_miss.all_l2_miss": 500,
    "bp_l1_tlb_miss_l2_tlb_miss.all": 100,
    "ex_no_retire.not_complete": 250_000,
    "ex_no_retire.load_not_complete": 150_000,
    "de_no_dispatch_per_slot.no_ops_from_frontend_at_all": 100_000,
    "branch-misses": 9_000,
    "umc_cas_cmd.rd": 100_000,
    "umc_cas_cmd.wr": 50_000,
}
ZEN_4_AND_5_VALUES = ANY_ZEN_VALUES | {
    "vector_scalar": 10.0,
    "vector_128": 20.0,
    "vector_256": 30.0,
    "vector_512": 40.0,
    "vector_fp_share": 90.0,
    "memory_stalls": 15.0,
    "topdown_retiring": 40.0,
    "topdown_bad_speculation": 5.0,
    "topdown_frontend": 15.0,
    "topdown_backend": 35.0,
    "topdown_smt": 5.0,
    "topdown_memory": 21.0,
    "topdown_core": 14.0,
    "topdown_fetch_latency": 10.0,
    "topdown_fetch_bandwidth": 5.0,
    "topdown_branch_mispredict": 4.5,
    "topdown_machine_clears": 0.5,
    "topdown_light": 36.0,
    "topdown_heavy": 4.0,
    "llc_mpki": 3.0,
    "dram_gbytes": 0.16,
    "dram_read_mpki": 2.5,
    "uncore_dram_read_gbytes": 3.2,
    "uncore_dram_write_gbytes": 1.6,
    "uncore_dram_gbytes": 4.8,
}

ANY_NEOVERSE = COMMON | {
    "br_retired": 100_000,
    "br_mis_pred_retired": 2_000,
    "l1d_cache": 600_000,
    "l1d_cache_refill": 60_000,
    "l1i_cache_refill": 4_000,
    "l2d_cache": 80_000,
    "l2d_cache_refill": 8_000,
    "ll_cache_rd": 10_000,
    "ll_cache_miss_rd": 5_000,
    "dtlb_walk": 500,
    "itlb_walk": 100,
    "vfp_spec": 100,
    "ase_spec": 300,
}
ANY_NEOVERSE_VALUES = {
    "branch_mpki": 1.0,
    "branch_miss_ratio": 2.0,
    "l1d_mpki": 30.0,
    "l1d_miss_ratio": 10.0,
    "l1i_mpki": 2.0,
    "l2_mpki": 4.0,
    "l2_miss_ratio": 10.0,
    "llc_mpki": 2.5,
    "llc_miss_ratio": 50.0,
    "dtlb_mpki": 0.25,
    "itlb_mpki": 0.05,
    "dram_gbytes": 0.16,
}
# 80% of what was dispatched retired; a hundred cycles in every ten thousand followed a mispredicted branch, fourfold.
WITH_SVE = ANY_NEOVERSE | {
    "sve_inst_spec": 600,
    "fp_scale_ops_spec": 10_000_000,
    "fp_fixed_ops_spec": 4_000_000,
    "stall_backend_mem": 150_000,
    "op_retired": 2_400_000,
    "op_spec": 3_000_000,
    "br_mis_pred": 5_000,
}
WITH_SVE_VALUES = ANY_NEOVERSE_VALUES | {
    "vector_scalar": 10.0,
    "vector_fp_share": 90.0,
    "memory_stalls": 15.0,
    "topdown_retiring": 32.0,
    "topdown_bad_speculation": 10.0,
}
EIGHT_SLOTS = {"stall_slot": 4_800_000, "stall_slot_frontend": 1_600_000, "stall_slot_backend": 3_200_000}
THREE_REFILL_CYCLES_ARE_BACKEND = {"topdown_frontend": 19.5, "topdown_backend": 38.5}

CASES: dict[str, tuple[dict[str, int], dict[str, float]]] = {
    "amd-zen2": (
        ANY_ZEN
        | CHANNELS
        | {
            "all_dc_accesses": 600_000,
            "ls_refills_from_sys.all": 60_000,
            "ls_refills_from_sys.dram": 2_000,
            "ls_refills_from_sys.ls_mabresp_lcl_cache": 6_000,
            "ls_hw_pf_dc_fill.dram": 1_500,
            "ls_sw_pf_dc_fill.dram": 500,
            "l2_pf_miss_l2_l3": 1_000,
            "l2_dtlb_misses": 500,
            "l2_itlb_misses": 100,
        },
        ANY_ZEN_VALUES
        | CHANNELS_VALUES
        | {"llc_mpki": 2.5, "llc_miss_ratio": 25.0, "dram_gbytes": 0.16, "dram_read_mpki": 2.5},
    ),
    "amd-zen3": (
        ANY_ZEN
        | CHANNELS
        | {
            "all_data_cache_accesses": 600_000,
            "ls_dmnd_fills_from_sys.all": 60_000,
            "l1_data_cache_fills_from_memory": 3_000,
            "l1_data_cache_fills_from_external_ccx_cache": 1_000,
            "ls_any_fills_from_sys.int_cache": 4_000,
            "l2_pf_miss_l2_l3.l2_hwpf": 2_000,
            "l2_dtlb_misses": 500,
            "bp_l1_tlb_miss_l2_tlb_miss": 100,
        },
        ANY_ZEN_VALUES
        | CHANNELS_VALUES
        | {"llc_mpki": 3.0, "llc_miss_ratio": 50.0, "dram_gbytes": 0.16, "dram_read_mpki": 2.5},
    ),
    "amd-zen4": (
        ZEN_4_AND_5
        | {
            "fp_ret_sse_avx_ops.bfloat_mac_flops": 16_000_000,
            "all_data_cache_accesses": 600_000,
            "ls_any_fills_from_sys.dram_io_all": 3_000,
            "ls_any_fills_from_sys.remote_cache": 1_000,
            "ls_any_fills_from_sys.local_ccx": 4_000,
            "l2_pf_miss_l2_l3.l2_hwpf": 2_000,
            "ex_ret_ops": 2_400_000,
            "ex_ret_ucode_ops": 240_000,
            "de_src_op_disp.all": 2_700_000,
            "de_no_dispatch_per_slot.no_ops_from_frontend": 900_000,
            "de_no_dispatch_per_slot.backend_stalls": 2_100_000,
            "de_no_dispatch_per_slot.smt_contention": 300_000,
            "resyncs_or_nc_redirects": 1_000,
        },
        ZEN_4_AND_5_VALUES | {"counted_gflops_bf16": 8.0, "llc_miss_ratio": 50.0},
    ),
    "amd-zen5": (
        ZEN_4_AND_5
        | {
            "fp_ret_sse_avx_ops.scalar_single_flops": 2_000_000,
            "fp_ret_sse_avx_ops.packed_single_flops": 62_000_000,
            "fp_ret_sse_avx_ops.scalar_double_flops": 1_000_000,
            "fp_ret_sse_avx_ops.packed_double_flops": 7_000_000,
            "fp_ret_sse_avx_ops.bfloat16_flops": 16_000_000,
            "sse_avx_ops_retired.sse_avx_vnni": 250,
            "sse_avx_ops_retired.sse_avx_all": 1_000,
            "ls_dispatch.all": 600_000,
            "l2_fill_rsp_src.all": 10_000,
            "l2_fill_rsp_src.local_ccx": 4_000,
            "l2_fill_rsp_src.dram_io_near": 3_000,
            "l2_fill_rsp_src.dram_io_far": 2_000,
            "ex_ret_ops": 3_200_000,
            "ex_ret_ucode_ops": 320_000,
            "de_src_op_disp.all": 3_600_000,
            "de_no_dispatch_per_slot.no_ops_from_frontend": 1_200_000,
            "de_no_dispatch_per_slot.backend_stalls": 2_800_000,
            "de_no_dispatch_per_slot.smt_contention": 400_000,
            "bp_redirects.resync": 1_000,
        },
        ZEN_4_AND_5_VALUES
        | {
            "counted_gflops_fp32": 32.0,
            "counted_gflops_fp64": 4.0,
            "counted_gflops_bf16": 8.0,
            "vnni_share": 25.0,
            "llc_miss_ratio": 60.0,
        },
    ),
    "arm-neoverse-n1": (
        ANY_NEOVERSE,
        ANY_NEOVERSE_VALUES | {"vector_scalar": 25.0, "vector_128": 75.0, "vector_fp_share": 75.0},
    ),
    # SVE's operations count twice, since its vectors have 256 bits; all four refill cycles are the front end's.
    "arm-neoverse-v1": (
        WITH_SVE | EIGHT_SLOTS,
        WITH_SVE_VALUES
        | {"counted_flops": 24e6, "counted_gflops": 12.0, "vector_128": 30.0, "vector_256": 60.0}
        | {"topdown_frontend": 18.0, "topdown_backend": 40.0},
    ),
    # Five slots.
    "arm-neoverse-n2": (
        WITH_SVE | {"stall_slot": 3_000_000, "stall_slot_frontend": 1_000_000, "stall_slot_backend": 2_000_000},
        WITH_SVE_VALUES
        | {"counted_flops": 14e6, "counted_gflops": 7.0, "vector_128": 90.0}
        | THREE_REFILL_CYCLES_ARE_BACKEND,
    ),
    # The same with the erratum: both stall counts hold one slot too many for each of the million cycles.
    "arm-neoverse-n2-r0p2": (
        WITH_SVE | {"stall_slot": 4_000_000, "stall_slot_frontend": 2_000_000, "stall_slot_backend": 2_000_000},
        WITH_SVE_VALUES
        | {"counted_flops": 14e6, "counted_gflops": 7.0, "vector_128": 90.0}
        | THREE_REFILL_CYCLES_ARE_BACKEND,
    ),
    "arm-neoverse-v2": (
        WITH_SVE | EIGHT_SLOTS,
        WITH_SVE_VALUES
        | {"counted_flops": 14e6, "counted_gflops": 7.0, "vector_128": 90.0}
        | THREE_REFILL_CYCLES_ARE_BACKEND,
    ),
}


def value(file: Catalogue, metric: str, counts: dict[str, int]) -> float:
    """The metric as a run computes it."""
    name = next(name for name in vocabulary() if name.name == metric)
    formula = definition(name, [("cpu", file.recipes[metric])], frozenset()).formula
    return float(pl.DataFrame(counts).select(pl.sql_expr(formula)).item())


@pytest.mark.parametrize(("file", "metric"), [(file, metric) for file in CASES for metric in catalogue(file).recipes])
def test_every_metric_of_counts_computed_by_hand(file: str, metric: str) -> None:
    counts, expected = CASES[file]
    assert value(catalogue(file), metric, counts) == pytest.approx(expected[metric])


@pytest.mark.parametrize("file", CASES)
def test_nothing_is_expected_that_the_file_has_not(file: str) -> None:
    assert set(CASES[file][1]) == set(catalogue(file).recipes)


@pytest.mark.parametrize("file", [file for file in CASES if "topdown_retiring" in catalogue(file).recipes])
def test_slots_add_up(file: str) -> None:
    recipes = catalogue(file).recipes
    shares = [value(catalogue(file), metric, CASES[file][0]) for metric in LEVEL_1 if metric in recipes]
    assert sum(shares) == pytest.approx(100)


@pytest.mark.parametrize("file", ZEN)
def test_flops_of_amd_take_a_pair_of_counters(file: str) -> None:
    """amd/core.c pairs counters for event 3; whoever packs a set must know."""
    flops = [event for event in catalogue(file).events if event.unit == "FLOP"]
    assert flops
    for event in catalogue(file).events:
        is_flop_event = (event.code or "").startswith("event=0x03,")
        assert (event.counters == 2) == is_flop_event == (event in flops), event.name


def test_every_flop_event_of_zen_5_chooses_operations() -> None:
    """The high half of the unit mask is the type, the low half the operations: without any, nothing is counted."""
    for event in catalogue("amd-zen5").events:
        if event.unit == "FLOP":
            mask = re.fullmatch(r"event=0x03,umask=0x(..)", event.code or "")
            assert mask is not None
            assert int(mask[1], 16) & 0x0F, event.name


@pytest.mark.parametrize("file", NEOVERSE)
def test_scalable_vectors_weigh_as_many_times_128_bits_as_they_have(file: str) -> None:
    events = catalogue(file).named()
    if "fp_scale_ops_spec" in events:
        width = events["sve_inst_spec"].width
        assert width is not None
        assert events["fp_scale_ops_spec"].weight == width // 128
    else:
        assert file == "arm-neoverse-n1"


@pytest.mark.parametrize("file", ZEN)
def test_what_the_cores_share_is_charged_to_no_thread(file: str) -> None:
    for event in catalogue(file).events:
        assert (event.scope == "socket") == (event.pmu is not None), event.name
