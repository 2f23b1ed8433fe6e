"""The verdict of the report of `make chaos` about its own run."""

from collections import Counter

import pytest

from loadtests.chaos.log import ANSWERED, Log, Record
from loadtests.chaos.report import Played, Row, judge, write


@pytest.mark.parametrize(("seconds", "is_short"), [(8.0, True), (30.0, False)])
def test_chaos_report_gives_no_verdict_on_short_faults(tmp_path, seconds, is_short):
    record = Record(1, 1.5, ANSWERED)
    row = judge(Row("none", "nothing", "the start"), Log([record]), returned=1.0, lost=0)
    write(tmp_path, [Played(row, [record], 1.0, 1.0, [], Counter())], seconds)
    assert ("Too short for a verdict: the faults lasted 8 s" in (tmp_path / "chaos.md").read_text()) is is_short
