"""The verdict of the report of `make chaos` about its own run."""

import pytest

from loadtests.chaos.log import ANSWERED, Log, Record
from loadtests.chaos.report import Played, write
from loadtests.chaos.stage import Fault


@pytest.mark.parametrize(("seconds", "is_short"), [(8.0, True), (30.0, False)])
def test_chaos_report_gives_no_verdict_on_short_faults(tmp_path, seconds, is_short):
    fault = Fault("none", "nothing", "the start", lambda _: None)
    write(tmp_path, [Played(fault, Log([Record(1, 1.5, ANSWERED)]), 1.0, 1.0)], seconds)
    assert ("Too short for a verdict: the faults lasted 8 s" in (tmp_path / "chaos.md").read_text()) is is_short


def test_chaos_report_has_the_reason_of_a_skipped_fault(tmp_path):
    fault = Fault("disk-full", "no space", "there is space", lambda _: None)
    write(tmp_path, [Played(fault, Log(), skipped="only root can mount a file system")], 30.0)
    assert "skipped: only root can mount a file system" in (tmp_path / "chaos.md").read_text()
