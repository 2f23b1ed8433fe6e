"""The kinds of plot of the reports; each function returns a `Plot` with an SVG element and a PNG on demand."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from loadtests.reporting.canvas import COLOURS, OUTCOME_COLOURS, look, plot, readable, rows, scales
from loadtests.reporting.figures import Spread, number
from loadtests.reporting.result import Plot

__all__ = ["COLOURS", "bands", "bars", "lines", "percentiles", "ratios", "scaling", "shares", "surface"]

# Values that differ by more than this factor get a logarithmic colour scale.
LOG_RANGE = 20
# More labels on an axis would overlap.
MOST_TICKS = 12
# More rows would not fit on a page.
MOST_ROWS = 50
# The ticks of an axis of ratios.
RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 2, 3, 5, 10, 20, 50, 100)

Points = Sequence[tuple[float, float]]


def lines(title: str, series: dict[str, Points], **scale: Any) -> Plot:
    """One line for each name; `scale` has the options of `canvas.scales`."""

    def draw(axes: Axes) -> None:
        for index, (name, points) in enumerate(series.items()):
            axes.plot(*zip(*points, strict=True), label=name, linewidth=1.4, **look(index))
        scales(axes, **scale)

    return plot(title, draw)


def bands(title: str, series: dict[str, Sequence[tuple[float, float, float]]], **scale: Any) -> Plot:
    """For each name a line of medians with a band up to a high percentile; points are (x, median, high)."""

    def draw(axes: Axes) -> None:
        for index, (name, points) in enumerate(series.items()):
            places, middle, high = zip(*points, strict=True)
            axes.plot(places, middle, label=name, **look(index))
            axes.fill_between(places, middle, high, color=look(index)["color"], alpha=0.15, linewidth=0)
        scales(axes, **scale)

    return plot(title, draw)


def bars(title: str, values: dict[str, Spread], *, x: str, log_x: bool = False) -> Plot:
    """Medians with whiskers from minimum to maximum, from top to bottom in the given order.

    They are bars, or dots on a logarithmic axis, where the length of a bar has no meaning.
    """

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
            readable(axes.xaxis)
        rows(axes, names)

    return plot(title, draw, height=0.9 + 0.42 * len(values))


def percentiles(title: str, values: dict[str, tuple[float, float, float]], *, x: str) -> Plot:
    """For each name a bar from p50 to p99 with a mark at p95, on a logarithmic axis."""

    def draw(axes: Axes) -> None:
        names = list(values)[::-1]
        for place, name in enumerate(names):
            middle, high, highest = values[name]
            axes.plot((middle, highest), (place, place), color=COLOURS[0], linewidth=6, alpha=0.35)
            axes.plot(middle, place, "o", color=COLOURS[0], label="p50" if not place else None)
            axes.plot(high, place, "|", color="black", markersize=12, label="p95" if not place else None)
            axes.plot(highest, place, ">", color=COLOURS[1], markersize=5, label="p99" if not place else None)
        scales(axes, x, "", log_x=True)
        rows(axes, names)

    return plot(title, draw, height=1.0 + 0.3 * len(values))


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
            places = [place for place, values in points if values]
            spreads = [Spread.of(values) for _, values in points if values]
            whiskers = [[one.median - one.low for one in spreads], [one.high - one.median for one in spreads]]
            middles = [one.median for one in spreads]
            axes.errorbar(places, middles, yerr=whiskers, label=name, linewidth=1.4, capsize=3, **look(index))
        mark(axes)
        places = sorted({place for points in series.values() for place, _ in points})
        few = log_x and len(places) <= MOST_TICKS
        scales(axes, x, y, log_x=log_x, log_y=log_y, ticks=places if few else ())

    return plot(title, draw)


def surface(
    title: str,
    row_names: Sequence[str | float],
    columns: Sequence[str | float],
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
    cells = numpy.array([[math.nan if value is None else value for value in row] for row in values], dtype=float)
    known = cells[numpy.isfinite(cells)]
    wide = known.size and known.min() > 0 and known.max() > LOG_RANGE * known.min()

    def draw(axes: Axes) -> None:
        low, high = (known.min(), known.max()) if known.size else (0, 1)
        norm = (LogNorm if wide else Normalize)(low, high)
        image = axes.imshow(cells, cmap="cividis", norm=norm, aspect="auto")
        for (row, column), value in numpy.ndenumerate(cells):
            pale = not math.isfinite(value) or (float(norm(value)) if high > low else 0) > 0.45
            shown = number(float(value)) if math.isfinite(value) else "–"
            axes.text(column, row, shown, ha="center", va="center", color="black" if pale else "white")
        axes.set_xticks(range(len(columns)), [_label(name) for name in columns])
        axes.set_yticks(range(len(row_names)), [_label(name) for name in row_names])
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(visible=False)
        axes.figure.colorbar(image, ax=axes, label=unit, pad=0.02)

    return plot(title, draw, height=1.6 + 0.42 * len(row_names))


def shares(title: str, values: Mapping[str, Mapping[str, float]], *, x: str = "share of requests, %") -> Plot:
    """For each row a bar of shares by kind, in fractions of one, with the share of the first kind beside it.

    Outcomes have the same colours as in all plots.
    """

    def draw(axes: Axes) -> None:
        kinds = list(dict.fromkeys(kind for row in values.values() for kind in row))
        names = list(values)[::-1]
        left = numpy.zeros(len(names))
        for index, kind in enumerate(kinds):
            widths = numpy.array([values[name].get(kind, 0.0) * 100 for name in names])
            colour = OUTCOME_COLOURS.get(kind, COLOURS[index % len(COLOURS)])
            axes.barh(range(len(names)), widths, left=left, color=colour, height=0.7, label=kind)
            left += widths
        for place, name in enumerate(names):
            share = f"{values[name].get(kinds[0], 0.0):.2%}".replace("%", " %")
            axes.annotate(share, (100, place), xytext=(4, 0), textcoords="offset points", va="center")
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, 100)
        axes.set_xlabel(x)
        rows(axes, names)
        axes.legend(loc="center left", bbox_to_anchor=(1.1, 0.5), frameon=False)

    return plot(title, draw, height=1.0 + 0.32 * len(values))


def ratios(
    title: str, values: Mapping[str, tuple[float, float, float, str]], *, x: str, unchanged: Sequence[str] = ()
) -> Plot:
    """For each name a dot with its interval on a logarithmic axis, and its verdict; `unchanged` verdicts are grey.

    Values are (ratio, low, high, verdict). Of more than `MOST_ROWS` names, those farthest from 1 are shown.
    """
    farthest = sorted(values, key=lambda name: -abs(math.log(values[name][0])))[:MOST_ROWS]
    names = [name for name in values if name in farthest][::-1]
    shown = title if len(names) == len(values) else f"{title} ({len(names)} of {len(values)} that differ most)"

    def draw(axes: Axes) -> None:
        verdicts = [one for one in dict.fromkeys(values[name][3] for name in names) if one not in unchanged]
        for place, name in enumerate(names):
            ratio, low, high, verdict = values[name]
            colour = COLOURS[verdicts.index(verdict)] if verdict in verdicts else "#7f7f7f"
            whiskers = [[ratio - low], [high - ratio]]
            axes.errorbar(ratio, place, xerr=whiskers, fmt="o", color=colour, capsize=3, markersize=4)
            place_of_word = {"xytext": (1.01, place), "textcoords": axes.get_yaxis_transform(), "va": "center"}
            axes.annotate(verdict, (1, place), xycoords=axes.get_yaxis_transform(), color=colour, **place_of_word)
        axes.axvline(1, color="black", linewidth=1)
        ends = [values[name][part] for name in names for part in (1, 2)]
        low, high = min(0.9, *ends), max(1.1, *ends)
        scales(axes, x, "", log_x=True, ticks=[one for one in RATIOS if low <= one <= high])
        axes.set_xlim(low / 1.03, high * 1.03)
        rows(axes, names)

    return plot(shown, draw, height=1.0 + 0.26 * len(names))


def _label(name: str | float) -> str:
    return name if isinstance(name, str) else f"{name:,g}" if name < 1e6 else f"{name:,.0f}"
