"""Cores and NUMA nodes, as sysfs shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.hardware.topology import nodes, siblings


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text + "\n")


@pytest.mark.parametrize("name", ["core_cpus_list", "thread_siblings_list"])
def test_processors_that_are_one_core_are_named_once(tmp_path: Path, name: str) -> None:
    for cpu, core in ((0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")):
        write(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/topology/{name}", core)
    assert siblings(tmp_path, [0, 1, 2, 3]) == ((0, 2), (1, 3))


def test_where_one_of_them_is_not_told_none_is(tmp_path: Path) -> None:
    write(tmp_path, "sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0-1")
    assert siblings(tmp_path, [0, 1]) == () and siblings(tmp_path / "nowhere", [0]) == ()


def test_nodes_are_in_order_and_those_without_processors_are_none(tmp_path: Path) -> None:
    for node, cpus in ((10, "8-9"), (2, "0-3,6"), (3, "")):
        write(tmp_path, f"sys/devices/system/node/node{node}/cpulist", cpus)
    write(tmp_path, "sys/devices/system/node/online", "2-3,10")
    assert nodes(tmp_path) == ((0, 1, 2, 3, 6), (8, 9))
    assert nodes(tmp_path / "nowhere") == ()
