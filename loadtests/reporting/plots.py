"""The kinds of plot of the reports; each function returns a `Plot` with an SVG element and a PNG on demand."""

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy

matplotlib.use("svg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from loadtests.reporting.figures import Spread, number
from loadtests.reporting.result import Plot

# Distinguishable with colour blindness, and in grey.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d31", "#7f7f7f", "#a50026")
MARKERS = "osD^vP*Xph"
GREY = COLOURS[8]
# Width in inches; resolution that is sharp on a slide.
WIDTH, PICTURE_DPI = 9, 150
# Values that differ by more than this factor get a logarithmic colour scale.
LOG_RANGE = 20
# More labels on an axis would overlap.
MOST_TICKS = 12
# More rows would not fit on a page.
MOST_ROWS = 50
# The ticks of an axis of ratios.
RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 2, 3, 5, 10, 20, 50, 100)
pyplot.style.use(Path(__file__).with_name("plots.mplstyle"))


def look(index: int) -> dict[str, Any]:
    """Colour and marker of a series."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)], "markersize": 4}


def scales(
    axes: Axes, x: str, y: str, *, log_x: bool = False, log_y: bool = False, ticks: Sequence[float] = ()
) -> None:
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
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axis.set_minor_formatter("")


def beside(axes: Axes, *, on_top: bool = False) -> None:
    """Put the legend, if there is one, to the right of the axes, in the middle or `on_top`."""
    if axes.get_legend_handles_labels()[0]:
        place = ("upper left", 1.0) if on_top else ("center left", 0.5)
        axes.legend(loc=place[0], bbox_to_anchor=(1.01, place[1]), frameon=False)


def plot(title: str, draw: Callable[[Axes], None], height: float = 3.6) -> Plot:
    """A figure of one panel, drawn by `draw`; `height` in inches."""

    def make() -> Figure:
        figure, axes = pyplot.subplots(figsize=(WIDTH, height))
        draw(axes)
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        return figure

    return drawn(title, make)


def drawn(title: str, make: Callable[[], Figure]) -> Plot:
    """A plot of the figure that `make` returns; `make` is called again for the PNG."""

    def saved(form: str, **options: Any) -> bytes:
        content = io.BytesIO()
        try:
            make().savefig(content, format=form, bbox_inches="tight", dpi=PICTURE_DPI, **options)
        finally:
            pyplot.close()
        return content.getvalue()

    # An SVG element inside HTML must not have an XML declaration.
    text = saved("svg", metadata={"Date": None}).decode()
    return Plot(title, re.sub(r"^.*?(?=<svg)", "", text, count=1, flags=re.DOTALL), lambda: saved("png"))


def lines(title: str, series: Mapping[str, Sequence[tuple[float, ...]]], **scale: Any) -> Plot:
    """One line for each name; `scale` has the options of `scales`.

    Points are (x, y), or (x, y, high) for a line with a band up to a high percentile.
    """

    def draw(axes: Axes) -> None:
        for index, (name, points) in enumerate(series.items()):
            places, middle, *high = zip(*points, strict=True)
            axes.plot(places, middle, label=name, linewidth=1.4, **look(index))
            for top in high:
                axes.fill_between(places, middle, top, color=look(index)["color"], alpha=0.15, linewidth=0)
        scales(axes, **scale)

    return plot(title, draw)


def scaling(
    title: str,
    series: Mapping[str, Sequence[tuple[float, Sequence[float]]]],
    *,
    x: str,
    y: str,
    log_x: bool = True,
    log_y: bool = True,
    mark: Callable[[Axes], None] = lambda _: None,
) -> Plot:
    """For each name a line of medians with whiskers from minimum to maximum.

    Points are (x, values of all repetitions). `mark` may draw additional elements.
    """

    def draw(axes: Axes) -> None:
        for index, (name, points) in enumerate(series.items()):
            known = [(place, Spread.of(values)) for place, values in points if values]
            middles = [spread.median for _, spread in known]
            whiskers = [[one.median - one.low for _, one in known], [one.high - one.median for _, one in known]]
            places = [place for place, _ in known]
            axes.errorbar(places, middles, yerr=whiskers, label=name, linewidth=1.4, capsize=3, **look(index))
        mark(axes)
        places = sorted({place for points in series.values() for place, _ in points})
        few = log_x and len(places) <= MOST_TICKS
        scales(axes, x, y, log_x=log_x, log_y=log_y, ticks=places if few else ())

    return plot(title, draw)


def _rows(
    title: str, names: Sequence[str], draw: Callable[[Axes, int, str], None], *, row: float, **scale: Any
) -> Plot:
    """A plot with a row for each name, from top to bottom, drawn by `draw`; `row` is the height of a row in inches."""

    def whole(axes: Axes) -> None:
        for place, name in enumerate(reversed(names)):
            draw(axes, place, name)
        scales(axes, y="", **scale)
        axes.set_yticks(range(len(names)), names[::-1])
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.grid(visible=False, axis="y")

    return plot(title, whole, height=1.0 + row * len(names))


def bars(title: str, values: Mapping[str, Spread], *, x: str, log_x: bool = False) -> Plot:
    """Medians with whiskers from minimum to maximum, from top to bottom in the given order.

    They are bars, or dots on a logarithmic axis, where the length of a bar has no meaning.
    """

    def draw(axes: Axes, place: int, name: str) -> None:
        spread = values[name]
        whiskers = [[spread.median - spread.low], [spread.high - spread.median]]
        if not log_x:
            axes.barh(place, spread.median, color=COLOURS[0], height=0.6, alpha=0.85)
        shape = "o" if log_x else "none"
        axes.errorbar(spread.median, place, xerr=whiskers, fmt=shape, color="black", capsize=3, linewidth=1)
        side = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(number(spread.median), (spread.high, place), **side)
        axes.margins(x=0.15)

    return _rows(title, list(values), draw, row=0.42, x=x, log_x=log_x)


def percentiles(title: str, values: Mapping[str, tuple[float, float, float]], *, x: str) -> Plot:
    """For each name a bar from p50 to p99 with a mark at p95, on a logarithmic axis."""

    def draw(axes: Axes, place: int, name: str) -> None:
        middle, high, highest = values[name]
        axes.plot((middle, highest), (place, place), color=COLOURS[0], linewidth=6, alpha=0.35)
        axes.plot(middle, place, "o", color=COLOURS[0], label="p50" if not place else None)
        axes.plot(high, place, "|", color="black", markersize=12, label="p95" if not place else None)
        axes.plot(highest, place, ">", color=COLOURS[1], markersize=5, label="p99" if not place else None)

    return _rows(title, list(values), draw, row=0.3, x=x, log_x=True)


def ratios(title: str, values: Mapping[str, tuple[float, float, float, str]], *, x: str) -> Plot:
    """For each name a dot with its interval on a logarithmic axis, grey if that contains 1, and its verdict.

    Values are (ratio, low, high, verdict). Of more than `MOST_ROWS` names, those farthest from 1 are shown.
    """
    farthest = sorted(values, key=lambda name: -abs(math.log(values[name][0])))[:MOST_ROWS]
    names = [name for name in values if name in farthest]
    shown = title if len(names) == len(values) else f"{title} ({len(names)} of {len(values)} that differ most)"
    ends = [values[name][part] for name in names for part in (1, 2)]
    lowest, highest = min(0.9, *ends), max(1.1, *ends)

    def draw(axes: Axes, place: int, name: str) -> None:
        ratio, low, high, verdict = values[name]
        colour = GREY if low <= 1 <= high else COLOURS[0]
        axes.errorbar(ratio, place, xerr=[[ratio - low], [high - ratio]], fmt="o", color=colour, capsize=3)
        axes.text(1.01, place, verdict, transform=axes.get_yaxis_transform(), color=colour, va="center")
        axes.axvline(1, color="black", linewidth=1)
        axes.set_xlim(lowest / 1.03, highest * 1.03)

    ticks = [one for one in RATIOS if lowest <= one <= highest]
    return _rows(shown, names, draw, row=0.26, x=x, log_x=True, ticks=ticks)


def surface(
    title: str,
    row_names: Sequence[float],
    columns: Sequence[float],
    values: Sequence[Sequence[float | None]],
    *,
    x: str,
    y: str,
    unit: str = "",
) -> Plot:
    """A table as a heat map with the number in each cell.

    The cells are `values[row][column]`, None for a missing value; the first row is at the top. `x` is the label
    of the columns, `y` that of the rows, `unit` that of the numbers.
    """
    cells = numpy.array(values, dtype=float)
    known = cells[numpy.isfinite(cells)]
    low, high = (known.min(), known.max()) if known.size else (0, 1)
    norm = LogNorm(low, high) if low > 0 and high > LOG_RANGE * low else Normalize(low, high)

    def draw(axes: Axes) -> None:
        image = axes.imshow(cells, cmap="cividis", norm=norm, aspect="auto")
        for (row, column), value in numpy.ndenumerate(cells):
            pale = not math.isfinite(value) or (float(norm(value)) if high > low else 0) > 0.45
            shown = number(float(value)) if math.isfinite(value) else "–"
            axes.text(column, row, shown, ha="center", va="center", color="black" if pale else "white")
        axes.set_xticks(range(len(columns)), [f"{name:,}" for name in columns])
        axes.set_yticks(range(len(row_names)), [f"{name:,}" for name in row_names])
        axes.set(xlabel=x, ylabel=y)
        axes.grid(visible=False)
        axes.figure.colorbar(image, ax=axes, label=unit, pad=0.02)

    return plot(title, draw, height=1.6 + 0.42 * len(row_names))
