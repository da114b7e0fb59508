"""Counts of Intel's events, small enough to compute with by hand, and what metrics must make of them."""

from __future__ import annotations

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
