"""Common parts of all plots: colours, axes, and the conversion of figures to SVG and PNG."""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from loadtests.recording import outcome
from loadtests.reporting.result import Plot

# Distinguishable with colour blindness, and in grey.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d31", "#7f7f7f", "#a50026")
MARKERS = "osD^vP*Xph"
# An outcome has the same colour in all plots.
OUTCOME_COLOURS = {
    outcome.OK: "#009e73", outcome.WRONG: "#000000", outcome.NO_RESPONSE: "#d55e00", outcome.NOT_FOUND: "#56b4e9",
    outcome.CLIENT_ERROR: "#0072b2", outcome.OVERLOADED: "#e69f00", outcome.SERVER_ERROR: "#cc79a7",
    outcome.NOT_SENT: "#7f7f7f", outcome.RIG_ERROR: "#8c6d31",
}  # fmt: skip
# Width in inches; resolution that is sharp on a slide.
WIDTH, PICTURE_DPI = 9, 150

pyplot.rcParams.update(
    {
        "svg.fonttype": "none",
        # Equal figures give equal files.
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


def look(index: int) -> dict[str, Any]:
    """Colour and marker of a series."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)], "markersize": 4}


def scales(
    axes: Axes, x: str, y: str, *, log_x: bool = False, log_y: bool = False, ticks: Sequence[float] = ()
) -> None:
    """Set labels, scales and the legend; a linear vertical axis begins at 0."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    for is_log, set_scale, axis in ((log_x, axes.set_xscale, axes.xaxis), (log_y, axes.set_yscale, axes.yaxis)):
        if is_log:
            set_scale("log")
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


def rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the positions 0, 1, … of the vertical axis with names."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)


def plot(title: str, draw: Callable[[Axes], None], height: float = 3.6) -> Plot:
    """A figure of one panel, drawn by `draw`; `height` in inches."""

    def make() -> Figure:
        figure, axes = pyplot.subplots(figsize=(WIDTH, height))
        try:
            draw(axes)
        except BaseException:
            pyplot.close(figure)
            raise
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        return figure

    return drawn(title, make)


def drawn(title: str, make: Callable[[], Figure]) -> Plot:
    """A plot of the figure that `make` returns; `make` is called again for the PNG."""

    def picture() -> bytes:
        return _saved(make(), "png", dpi=PICTURE_DPI)

    # An SVG element inside HTML must not have an XML declaration.
    text = _saved(make(), "svg", dpi=PICTURE_DPI, metadata={"Date": None}).decode()
    return Plot(title, re.sub(r"^.*?(?=<svg)", "", text, count=1, flags=re.DOTALL), picture)


def _saved(figure: Figure, form: str, **options: Any) -> bytes:
    content = io.BytesIO()
    try:
        figure.savefig(content, format=form, bbox_inches="tight", **options)
    finally:
        pyplot.close(figure)
    return content.getvalue()
