"""Drawing: a handful of plots, each returned as the text of an SVG element."""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from loadtests.reporting.figures import Spread, number
from loadtests.reporting.result import Plot

# Told apart by people who see few colours, and in grey.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d31", "#7f7f7f", "#a50026")
MARKERS = "osD^vP*Xph"

pyplot.rcParams.update(
    {
        "svg.fonttype": "none",
        # The same figures give the same file.
        "svg.hashsalt": "cdb",
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)

Points = Sequence[tuple[float, float]]


def lines(
    title: str,
    series: dict[str, Points],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
    ticks: Sequence[int] = (),
) -> Plot:
    """One line for each name; `ticks` are the places on the horizontal axis if not all numbers make sense there."""

    def draw(axes: Axes) -> None:
        for index, (name, points) in enumerate(series.items()):
            axes.plot(*zip(*points, strict=True), label=name, linewidth=1.4, **_look(index))
        _scales(axes, x, y, log_x=log_x, log_y=log_y, ticks=ticks)

    return _plot(title, draw)


def bands(
    title: str,
    series: dict[str, Sequence[tuple[float, float, float]]],
    *,
    x: str,
    y: str,
    log_x: bool,
    log_y: bool,
    ticks: Sequence[int] = (),
) -> Plot:
    """Of each name a line of medians, and a band from there up to a high percentile: (x, median, high)."""

    def draw(axes: Axes) -> None:
        for index, (name, points) in enumerate(series.items()):
            places, middle, high = zip(*points, strict=True)
            axes.plot(places, middle, label=name, **_look(index))
            axes.fill_between(places, middle, high, color=_look(index)["color"], alpha=0.15, linewidth=0)
        _scales(axes, x, y, log_x=log_x, log_y=log_y, ticks=ticks)

    return _plot(title, draw)


def bars(title: str, values: dict[str, Spread], *, x: str, log_x: bool = False) -> Plot:
    """Medians with whiskers from the least to the most, one below the other in the order given: as bars, or as dots on a
    logarithmic axis, where a bar's length would mean nothing."""

    def draw(axes: Axes) -> None:
        names = list(values)[::-1]
        for place, name in enumerate(names):
            spread = values[name]
            whiskers = [[spread.median - spread.low], [spread.high - spread.median]]
            if not log_x:
                axes.barh(place, spread.median, color=COLOURS[0], height=0.6, alpha=0.85)
            shape = "o" if log_x else "none"
            axes.errorbar(spread.median, place, xerr=whiskers, fmt=shape, color="black", capsize=3, linewidth=1)
            beside = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(number(spread.median), (spread.high, place), **beside)
        axes.margins(x=0.15)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(x)
        if log_x:
            axes.set_xscale("log")
            _readable(axes.xaxis)
        _rows(axes, names)

    return _plot(title, draw, height=0.9 + 0.42 * len(values))


def percentiles(title: str, values: dict[str, tuple[float, float, float]], *, x: str) -> Plot:
    """Of each name a bar from p50 to p99 with a mark at p95, on a logarithmic axis."""

    def draw(axes: Axes) -> None:
        names = list(values)[::-1]
        for place, name in enumerate(names):
            middle, high, highest = values[name]
            axes.plot((middle, highest), (place, place), color=COLOURS[0], linewidth=6, alpha=0.35)
            axes.plot(middle, place, "o", color=COLOURS[0], label="p50" if not place else None)
            axes.plot(high, place, "|", color="black", markersize=12, label="p95" if not place else None)
            axes.plot(highest, place, ">", color=COLOURS[1], markersize=5, label="p99" if not place else None)
        _scales(axes, x, "", log_x=True, log_y=False)
        _rows(axes, names)

    return _plot(title, draw, height=1.0 + 0.3 * len(values))


def _look(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)], "markersize": 4}


def _scales(axes: Axes, x: str, y: str, *, log_x: bool, log_y: bool, ticks: Sequence[int] = ()) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    for is_log, set_scale, axis in ((log_x, axes.set_xscale, axes.xaxis), (log_y, axes.set_yscale, axes.yaxis)):
        if is_log:
            set_scale("log")
            _readable(axis)
    if ticks:
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
    if not log_y and y:
        axes.set_ylim(bottom=0)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _readable(axis: Axis) -> None:
    """Plain numbers, which are read faster than powers of ten; more of them where there are few decades."""
    low, high = axis.get_view_interval()
    few = high < 1_000 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=20))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axis.set_minor_formatter("")


def _rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)


def _plot(title: str, draw: Callable[[Axes], None], height: float = 3.6) -> Plot:
    figure, axes = pyplot.subplots(figsize=(9, height))
    try:
        draw(axes)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        text = io.StringIO()
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    finally:
        pyplot.close(figure)
    # An SVG inside of HTML has no declaration of its own.
    return Plot(title, re.sub(r"^.*?(?=<svg)", "", text.getvalue(), count=1, flags=re.DOTALL))
