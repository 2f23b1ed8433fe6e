"""The memory that a process may use."""

import pytest

from cdb.processes.machine import memory_limit_bytes, memory_megabytes

PHYSICAL = memory_megabytes() * 2**20


@pytest.mark.parametrize(("text", "expected"), [("max\n", PHYSICAL), ("1000000\n", 1_000_000), ("9" * 19, PHYSICAL)])
def test_the_limit_of_a_container_counts_if_it_is_less(tmp_path, text, expected):
    (tmp_path / "memory.max").write_text(text)
    assert memory_limit_bytes(tmp_path / "memory.max") == expected


def test_without_a_container_all_of_the_memory_counts(tmp_path):
    assert memory_limit_bytes(tmp_path / "memory.max") == PHYSICAL
