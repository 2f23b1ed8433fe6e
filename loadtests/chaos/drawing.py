"""The plot of successful and failed requests per second against time, with one panel for each fault."""

import io
import math
from collections import Counter

from matplotlib import pyplot
from matplotlib.axes import Axes

from loadtests.chaos.clients import ANSWERED
from loadtests.chaos.play import Played
from loadtests.reporting.plots import COLOURS

COLUMNS = 3


def draw(played: list[Played]) -> str:
    """The plot as the text of an SVG file."""
    shown = [one for one in played if one.records]
    rows = max(1, math.ceil(len(shown) / COLUMNS))
    figure, grid = pyplot.subplots(rows, COLUMNS, figsize=(12, 2.4 * rows), squeeze=False, layout="constrained")
    try:
        for axes in grid.flat:
            axes.set_visible(False)
        for one, axes in zip(shown, grid.flat, strict=False):
            _panel(axes, one)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    finally:
        pyplot.close(figure)
    return text.getvalue()


def _panel(axes: Axes, one: Played) -> None:
    axes.set_visible(True)
    first = min(record.begin for record in one.records)
    seconds = range(int(max(record.end for record in one.records) - first) + 1)
    for label, colour, is_counted in (("200", COLOURS[0], True), ("504 and others", COLOURS[1], False)):
        ended = Counter(int(record.end - first) for record in one.records if (record.outcome == ANSWERED) is is_counted)
        axes.step(
            seconds, [ended[second] for second in seconds], where="post", label=label, color=colour, linewidth=1.2
        )
    axes.axvspan(one.began - first, max(one.returned, one.began + 0.1) - first, color="#000000", alpha=0.1, linewidth=0)
    axes.set_title(one.row.fault, loc="left", fontsize=9, fontweight="bold")
    axes.set_xlabel("s", fontsize=8)
    axes.set_ylabel("requests/s", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, frameon=False)
