"""The figures of the campaigns with closed loops, and the content of their tags, without a service."""

import contextlib
import itertools
import json
from types import SimpleNamespace

import numpy
import pytest

from cdb_rest.domain.moment import END_OF_TIME
from loadtests.campaigns import closed, sweep
from loadtests.campaigns.stage import Stage
from loadtests.campaigns.sweep import COLUMNS, Sweep, figures_of
from loadtests.content import blocks
from loadtests.harness import in_turns
from loadtests.recording.outcome import OK, WRONG
from loadtests.recording.reading import Recording
from loadtests.recording.rows import Sample
from loadtests.reporting.result import Run
from tests.loadtests.options import options


def test_in_turns_reverses_every_second_repetition():
    assert list(in_turns("ab", 3)) == [(1, "a"), (1, "b"), (2, "b"), (2, "a"), (3, "a"), (3, "b")]


def recorded(seconds, rows, outcomes, cores=()):
    """Sequential lookups that take `seconds` each, and a failed request for the list of tags."""
    ends = numpy.cumsum(seconds)
    begins, count = ends - seconds, len(seconds) + 1
    return Recording(
        0.0, numpy.append(begins, 0), numpy.append(begins, 0), numpy.append(ends, 100),
        numpy.array(["Job"] * count), numpy.array(["lookup"] * (count - 1) + ["globalTags"]), numpy.array(["GET"] * count),
        numpy.array([200] * count), numpy.array([*outcomes, WRONG]), numpy.array([*rows, 3]), numpy.array([10] * count),
        {}, tuple(Sample(when, cpu, 0.0, 1, 1) for when, cpu in enumerate(cores)),
    )  # fmt: skip


def test_sweep_figures_are_of_lookups_and_failures_of_all_requests():
    told = figures_of(
        Run("one", recorded([0.1, 0.1, 0.1, 0.7, 1.0], [10, 20, 0, 10, 10], [OK, OK, WRONG, OK, OK], [0.2, 0.9]))
    )
    assert told["count"] == 5
    assert told["rate"] == pytest.approx(2.0)
    assert told["peak"] is None
    assert (told["p50"], told["p95"], told["p99"]) == pytest.approx((100, 1000, 1000))
    # The empty response was wrong.
    assert told["rows"] == 12.5
    assert told["failed"] == 2
    assert told["cores"] == 0.9


def test_sweep_counts_lookups_of_busiest_second():
    told = figures_of(Run("one", recorded([0.4, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1, 0.9], [1] * 8, [OK] * 8)))
    assert told["peak"] == 5
    assert told["rate"] == pytest.approx(8 / 2.8)


def test_sweep_table_shows_spread_of_repetitions():
    found = Sweep(("point",))
    for label, seconds in (("one", 0.1), ("two", 0.2)):
        run = Run(label, recorded([seconds, seconds], [1, 1], [OK, OK]))
        found.add(("a",), run, figures_of(run))
    [row] = found.table("Title").rows
    cells = dict(zip(("point", *COLUMNS.values()), row, strict=True))
    assert (cells["point"], cells["lookups"]) == ("a", 4)
    assert cells["lookups/s"] == "7.50 (5.00–10.0)"
    assert cells["p50 ms"] == "150 (100–200)"
    assert cells["generator, cores"] is None
    findings = found.findings("", found.table(""), [], [], figures=("rate",))
    assert [(one["point"], one["repetition"], one["count"]) for one in findings.raw] == [("a", 1, 2), ("a", 2, 2)]
    assert findings.figures == {"a: lookups/s": [pytest.approx(10.0), pytest.approx(5.0)]}
    right, rows = findings.targets
    assert right.value == pytest.approx(4 / 6 * 100)
    assert not right.met
    assert rows.met


def test_sweep_without_rows_misses_target():
    found = Sweep(("point",))
    run = Run("one", recorded([0.1, 0.1], [0, 0], [OK, OK]))
    found.add(("a",), run, figures_of(run))
    assert not found.findings("", found.table(""), [], [], figures=()).targets[1].met


class Silent(Stage):
    """A service that sends no response."""

    url = "http://127.0.0.1:9"

    @contextlib.contextmanager
    def serving(self, **_):
        yield

    def load(self, label, load, *, detailed=True):
        return Run(label, recorded([], [], []))


# Logarithmic axes warn if there are no positive values.
@pytest.mark.filterwarnings("ignore:Data has no positive values")
@pytest.mark.parametrize("campaign", ["scenarios", "threads", "workers", "types-iovs", "endpoints"])
def test_closed_campaign_reports_service_without_responses(tmp_path, monkeypatch, campaign):
    listed = SimpleNamespace(call=lambda *_: SimpleNamespace(json=[{"name": "orm_max"}]))
    monkeypatch.setattr(Silent, "client", lambda _: listed)
    monkeypatch.setattr(sweep, "warm_up", lambda *_: None)
    stage = Silent(tmp_path, host="http://127.0.0.1:9", quick=True, options=options(campaign, quick=True))
    findings = getattr(closed, campaign.replace("-", "_"))(stage)
    assert [target.met for target in findings.targets] == [False, False]
    assert findings.plots


def test_growth_content_equals_naive_model():
    count = 60
    content = blocks.Content(count)
    assert content.at(0, 0) == [[*row(0), 0, 0, *END_OF_TIME, "1"]]
    for moment in [(2**31, 0), *(blocks.start_of(number) for number in range(count)), (10**9, 5)]:
        expected = {}
        for number in sorted(range(count), key=blocks.start_of):
            if blocks.start_of(number) <= moment:
                expected[blocks.type_of(number)] = [*row(number), *blocks.start_of(number), *END_OF_TIME, "1"]
        assert content.at(*moment) == [expected[kind] for kind in sorted(expected)]


def row(number):
    """The first columns of a row of a response, as they were inserted."""
    sent = blocks.row_to_insert("any", number)
    return [sent[name] for name in ("payload_type", "payload_url", "checksum", "size")]


def test_growth_starts_differ_and_are_spread_evenly():
    majors = [blocks.start_of(number)[0] for number in range(1000)]
    gaps = [after - before for before, after in itertools.pairwise(sorted(majors))]
    assert min(gaps) > 0
    assert max(gaps) < 5 * blocks.MOMENTS / 1000
    assert json.loads(json.dumps(blocks.row_to_insert("any", 7)))["since"] == list(blocks.start_of(7))
