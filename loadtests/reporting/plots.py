"""The kinds of plot of the reports."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from loadtests.reporting.figures import Spread, number
from loadtests.reporting.result import Plot

# Distinguishable with colour blindness, and in grey.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d31", "#7f7f7f", "#a50026")
COLOURS += ("#4b0082",)
MARKERS = "osD^vP*Xph"
GREY = COLOURS[8]
# Points (x, values of all repetitions) by the name of the line.
Repeated = Mapping[str, Sequence[tuple[float, Sequence[float]]]]
# The width in inches.
WIDTH = 9
# Text and lines with it are readable on any background.
OUTLINE = [Stroke(linewidth=3, foreground="white"), Normal()]
# More labels on an axis would overlap.
MOST_TICKS = 12
matplotlib.style.use(Path(__file__).with_name("plots.mplstyle"))


def look(index: int) -> dict[str, Any]:
    """Colour and marker of a series."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)], "markersize": 4}


def scales(axes: Axes, x: str, y: str, log_x: bool = False, log_y: bool = False, ticks: Sequence[float] = ()) -> None:
    """Set labels, scales and the legend; a linear vertical axis begins at 0."""
    axes.set(xlabel=x, ylabel=y, xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    for axis in [axis for axis, is_log in ((axes.xaxis, log_x), (axes.yaxis, log_y)) if is_log]:
        readable(axis)
    if ticks:
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
    if not log_y and y:
        axes.set_ylim(bottom=0)
    beside(axes)


def readable(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers instead of powers of ten; with more of them if it has few decades."""
    low, high = axis.get_view_interval()
    few = high < 1_000 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=20))
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axis.set_minor_formatter("")


def beside(axes: Axes) -> None:
    """Put the legend, if there is one, to the right of the axes."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)


def blank(title: str, height: float = 3.6) -> tuple[Plot, Axes]:
    """A plot of one panel, and its axes on which to draw; `height` in inches."""
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    return Plot(title, figure), axes


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], **scale: Any) -> Plot:
    """One line for each name through its points (x, y); `scale` has the options of `scales`."""
    plot, axes = blank(title)
    for index, (name, points) in enumerate(series.items()):
        axes.plot(*zip(*points, strict=True), label=name, linewidth=1.4, **look(index))
    scales(axes, **scale)
    return plot


def scaling(title: str, series: Repeated, *, x: str, y: str, log_x: bool = True, log_y: bool = True) -> Plot:
    """For each name a line of medians with whiskers from minimum to maximum."""
    plot, axes = blank(title)
    for index, (name, points) in enumerate(series.items()):
        known = [(place, Spread.of(values)) for place, values in points if values]
        medians, whiskers = _whiskers([spread for _, spread in known])
        places = [place for place, _ in known]
        axes.errorbar(places, medians, yerr=whiskers, label=name, linewidth=1.4, capsize=3, **look(index))
    places = sorted({place for points in series.values() for place, _ in points})
    scales(axes, x, y, log_x=log_x, log_y=log_y, ticks=places if log_x and len(places) <= MOST_TICKS else ())
    return plot


def _whiskers(spreads: Sequence[Spread]) -> tuple[list[float], list[list[float]]]:
    """The medians, and the distances from them to the minima and to the maxima."""
    low = [spread.median - spread.low for spread in spreads]
    return [spread.median for spread in spreads], [low, [spread.high - spread.median for spread in spreads]]


def bars(title: str, values: Mapping[str, Spread], *, x: str, log_x: bool = False) -> Plot:
    """Medians with whiskers from minimum to maximum, from top to bottom in the given order.

    They are bars, or dots on a logarithmic axis, where the length of a bar has no meaning.
    """
    plot, axes = blank(title, height=1 + 0.4 * len(values))
    places, (medians, whiskers) = range(len(values)), _whiskers(list(values.values()))
    if not log_x:
        axes.barh(places, medians, color=COLOURS[0], height=0.6, alpha=0.85)
    axes.errorbar(medians, places, xerr=whiskers, fmt="o" if log_x else "none", color="black", capsize=3, linewidth=1)
    for place, spread in enumerate(values.values()):
        side = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(number(spread.median), (spread.high, place), **side)
    axes.margins(x=0.15)
    scales(axes, x, "", log_x=log_x)
    axes.set_yticks(places, values)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    return plot
