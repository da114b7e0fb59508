"""What threads waited for while they were off-CPU. Data: ``off_cpu_reasons.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import msgspec
import numpy as np
import polars as pl

from collectors.sampler.switch_outs import SwitchOut
from collectors.sampler.unwinding import Unwinder
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.kernels import Kernel
from collectors.shared.symbols.mappings import Mapping as Mapped
from collectors.shared.symbols.process import vdso
from collectors.shared.symbols.resolver import Resolver
from hwprof.data_files import read_toml
from hwprof.run.schema import conform

_SYSTEM_CALL: Final = re.compile(r"__(?:x64|ia32|arm64|riscv|s390x)_sys_(\w+)")
_LIBC_NAME: Final = re.compile(r"_*(?:GI_+)?(?:libc_)?([^@]+)")


@dataclass(frozen=True)
class Reason:
    """What was waited for, and in which function that showed: the one that called for the wait, if it is known."""

    reason: str
    function: str


class _Callers(msgspec.Struct, forbid_unknown_fields=True):
    reason: str
    begins: tuple[str, ...]


class _Mutual(msgspec.Struct, forbid_unknown_fields=True):
    calls: tuple[str, ...]
    callers: tuple[_Callers, ...]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    domains: dict[Domain, str]
    calls: dict[str, tuple[str, ...]]
    kernel: dict[str, tuple[str, ...]]
    mutual: tuple[_Mutual, ...]


@cache
def _data() -> _File:
    return read_toml(__name__, "off_cpu_reasons.toml", _File)


@cache
def _reason_of() -> dict[str, str]:
    """By the name of a call, or of a function of the kernel's."""
    found = _data().calls | _data().kernel
    return {name: reason for reason, names in found.items() for name in names}


def reason_of(kernel: Sequence[Kernel], user: Kernel | None, callers: Sequence[Kernel]) -> Reason | None:
    """Of one switch-out; None where it is not known. ``kernel``: the operating system's functions; ``user``: the
    program's innermost one; ``callers``: those that called it, as far as known, all innermost first."""
    if user is not None and user.domain in _data().domains:
        return Reason(_data().domains[user.domain], user.name or user.library)
    called = next(_calls(kernel, user), None)
    if called is None or any(called in mutual.calls for mutual in _data().mutual):
        return _mutual([one for one in (user, *callers) if one is not None])
    reason = _reason_of().get(called)
    return Reason(reason, called) if reason is not None else None


def _calls(kernel: Sequence[Kernel], user: Kernel | None) -> Iterator[str]:
    """The call that it was in by the kernel's names, else by the kernel's functions, else by libc's."""
    names = [one.name for one in kernel if one.name is not None]
    for name in names:
        match = _SYSTEM_CALL.fullmatch(name)
        if match:
            yield match[1]
    yield from (name for name in names if name in _reason_of())
    if user is not None and user.domain is Domain.SYSTEM and user.name is not None:
        match = _LIBC_NAME.match(user.name)
        if match and match[1] in _reason_of():
            yield match[1]


def _mutual(functions: Sequence[Kernel]) -> Reason | None:
    for mutual in _data().mutual:
        for callers in mutual.callers:
            named = [one.name for one in functions if one.name is not None and one.name.startswith(callers.begins)]
            if named:
                return Reason(callers.reason, _plain(named[-1]))
    return None


def _plain(name: str) -> str:
    """Without the marks of libc's aliases."""
    return name.partition("@")[0].removeprefix("__GI_").lstrip("_") or name


def with_reasons(switches: pl.DataFrame, switch_outs: Sequence[SwitchOut], mappings: Sequence[Mapped]) -> pl.DataFrame:
    """The rows of ``switches`` with ``reason`` and ``function``: null where the thread was preempted, and where nobody
    knows. A switch-out is sampled right before the switch that it belongs to. ``mappings``: the process's own, as
    names of code want them."""
    sampled = pl.DataFrame(
        {
            "tid": [one.tid for one in switch_outs],
            "sampled_ns": [one.time_ns for one in switch_outs],
            "switch_out": range(len(switch_outs)),
        },
        schema={"tid": pl.Int32, "sampled_ns": pl.Int64, "switch_out": pl.Int64},
    ).sort("sampled_ns")
    numbered = switches.drop("reason", "function", strict=False).with_row_index("row")
    before = pl.col("in_ns").shift(1).over("tid", order_by="row").fill_null(-1)
    joined = (
        numbered.with_columns(since_ns=before)
        .drop_nulls("out_ns")
        .sort("out_ns")
        .join_asof(
            sampled, left_on="out_ns", right_on="sampled_ns", by="tid", strategy="backward", check_sortedness=False
        )
        .filter((pl.col("sampled_ns") >= pl.col("since_ns")) & ~pl.col("preempted"))
    )
    rows, which = joined["row"].to_list(), joined["switch_out"].to_list()
    found = explain([switch_outs[number] for number in which], mappings, Resolver(mappings, vdso=vdso()))
    known = [(row, reason) for row, reason in zip(rows, found, strict=True) if reason is not None]
    reasons = pl.DataFrame(
        {
            "row": [row for row, _ in known],
            "reason": [reason.reason for _, reason in known],
            "function": [reason.function for _, reason in known],
        },
        schema={"row": pl.UInt32, "reason": pl.String, "function": pl.String},
    )
    return conform("switches", numbered.join(reasons, on="row", how="left", maintain_order="left").drop("row"))


def explain(switch_outs: Sequence[SwitchOut], mappings: Sequence[Mapped], resolver: Resolver) -> list[Reason | None]:
    """Of each switch_out."""
    unwinder = Unwinder(mappings)
    chains = [(one.kernel, one.user, tuple(unwinder.callers(one))) for one in switch_outs]
    kernels = _names({address for chain in chains for address in _addresses(*chain)}, resolver)

    @cache
    def reason(kernel: tuple[int, ...], user: int | None, callers: tuple[int, ...]) -> Reason | None:
        return reason_of(
            [kernels[address - 1] for address in kernel],
            kernels[user] if user is not None else None,
            [kernels[address - 1] for address in callers],
        )

    return [reason(*chain) for chain in chains]


def _addresses(kernel: tuple[int, ...], user: int | None, callers: tuple[int, ...]) -> Iterator[int]:
    """To be named: of callers the instruction before the one returned to, as a call may be a function's last."""
    yield from (address - 1 for address in (*kernel, *callers))
    if user is not None:
        yield user


def _names(addresses: set[int], resolver: Resolver) -> dict[int, Kernel]:
    if not addresses:
        return {}
    ordered = np.array(sorted(addresses), dtype=np.uint64)
    numbers, kernels = resolver.resolve(ordered)
    return {address: kernels[number] for address, number in zip(ordered.tolist(), numbers.tolist(), strict=True)}
