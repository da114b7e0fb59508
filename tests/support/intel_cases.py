"""Of each of Intel's processors the counts and the values of all of its metrics, by hand."""

from __future__ import annotations

from tests.support.intel_counts import (
    AVX_2_FLOPS,
    AVX_2_VALUES,
    AVX_512,
    AVX_512_VALUES,
    BEFORE_SAPPHIRE_RAPIDS,
    BIG_CORE,
    BIG_CORE_VALUES,
    CHANNELS,
    CHANNELS_VALUES,
    CLIENT_VALUES,
    FOURTH_GENERATION,
    FOURTH_GENERATION_VALUES,
    LINES,
    LINES_VALUES,
    SLOTS,
    SMALL_CORE,
    SMALL_CORE_VALUES,
    client,
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
