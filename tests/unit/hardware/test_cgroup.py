from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.hardware.cgroup import Throttling, cpu_limit, throttling

SECOND = {"cpu.max": "150000 100000", "cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 7\nthrottled_usec 2500"}
FIRST = {
    "cpu.cfs_quota_us": "20000",
    "cpu.cfs_period_us": "100000",
    "cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 4170000000",
}
UNLIMITED = {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000", "cpu.stat": "nr_throttled 5\nthrottled_time 9"}


def _machine(root: Path, membership: str, groups: dict[str, dict[str, str]]) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(membership)
    for name, files in groups.items():
        folder = root / "sys/fs/cgroup" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("membership", "groups", "limit", "stopped"),
    [
        ("0::/\n", {"": SECOND}, 1.5, Throttling(7, 2_500_000)),  # in a container with a namespace of its own
        ("0::/a/b\n", {"a": SECOND, "a/b": {"cpu.max": "max 100000"}}, 1.5, Throttling(7, 2_500_000)),
        ("0::/a/b\n", {"a": SECOND, "a/b": {**SECOND, "cpu.max": "50000 100000"}}, 0.5, Throttling(14, 5_000_000)),
        ("4:cpu,cpuacct:/one\n0::/\n", {"cpu,cpuacct/one": FIRST}, 0.2, Throttling(3, 4_170_000_000)),
        ("4:cpu:/docker/1\n", {"cpu": FIRST}, 0.2, Throttling(3, 4_170_000_000)),  # shown as the root
        ("4:cpu:/../../one\n", {"cpu": FIRST, "one": SECOND}, 0.2, Throttling(3, 4_170_000_000)),
        ("4:memory:/one\n", {"one": SECOND}, None, None),
        ("4:cpu:/\n", {"cpu": UNLIMITED}, None, None),
        ("0::/\n", {"": {"cpu.max": "max 100000"}}, None, None),
        ("", {"": {"cpu.max": "garbage"}}, None, None),
        ("nonsense\n0:\n", {"cpu": {**FIRST, "cpu.cfs_period_us": "0"}}, None, None),
    ],
)
def test_the_strictest_group_on_the_way_counts(
    tmp_path: Path, membership: str, groups: dict[str, dict[str, str]], limit: float | None, stopped: Throttling | None
) -> None:
    root = _machine(tmp_path, membership, groups)
    assert cpu_limit(root) == limit
    assert throttling(root) == stopped


def test_a_mount_with_two_names_is_asked_once(tmp_path: Path) -> None:
    root = _machine(tmp_path, "4:cpu,cpuacct:/\n", {"cpu,cpuacct": FIRST})
    (root / "sys/fs/cgroup/cpu").symlink_to("cpu,cpuacct")
    assert throttling(root) == Throttling(3, 4_170_000_000)


def test_a_machine_that_tells_nothing_has_no_limit(tmp_path: Path) -> None:
    assert cpu_limit(tmp_path) is None
    assert throttling(tmp_path) is None
