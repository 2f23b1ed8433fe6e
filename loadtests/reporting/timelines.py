"""Plots of the requests of a run: their number and response times against time, and the distribution of the times."""

import math

import numpy
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patheffects import Normal, Stroke

from loadtests.recording import outcome
from loadtests.recording.outcome import OK
from loadtests.recording.reading import Recording
from loadtests.reporting.plots import COLOURS, GREY, beside, plot, readable, scales
from loadtests.reporting.result import Plot
from loadtests.reporting.summaries import by_name, failures_of

# An outcome has the same colour in all plots.
OUTCOME_COLOURS = dict(zip(outcome.OUTCOMES, (COLOURS[place] for place in (2, 6, 1, 4, 0, 5, 3, 8, 7)), strict=True))
# More points are drawn as a density, so that none are hidden.
MOST_POINTS = 15_000
# Long tests have wider bins, of a whole number of seconds, so that there are no more than these.
MOST_BINS = 600
# Shorter tests have bins of a tenth of a second.
SHORT_SECONDS = 10
# The most frequent names are drawn separately, all others together.
MOST_NAMES, REST, ALL = 6, "all others", "all requests"
CURVE_POINTS = 400
ACROSS, UP = 240, 90
LEAST_MS = 0.01
TIME = "time into the test, s"
# The style of lines that must be readable on any background.
OUTLINED = {"linewidth": 1.5, "path_effects": [Stroke(linewidth=3, foreground="white"), Normal()]}


def plots_of(requests: Recording) -> list[Plot]:
    """The plots of frequency, response times and their distribution; there must be at least one request."""
    return [
        plot("Frequency against time", lambda axes: _frequency(axes, requests)),
        plot("Response time against time", lambda axes: _times(axes, requests)),
        plot("Distribution of response times", lambda axes: _distribution(axes, requests)),
    ]


def _frequency(axes: Axes, requests: Recording) -> None:
    """The number of requests that ended per second, by outcome, and the mean of all."""
    seconds = float(requests.end.max() - requests.due.min())
    width, edges = _bins(requests.end)
    for kind in (OK, *failures_of(requests)):
        counts, _ = numpy.histogram(requests.end[requests.outcomes == kind], edges)
        axes.stairs(counts / width, edges, label=kind, color=OUTCOME_COLOURS[kind], linewidth=1.4)
    if seconds:
        mean = len(requests) / seconds
        axes.axhline(mean, color="black", linestyle="--", linewidth=1, label=f"mean of all: {mean:,.4g}/s")
    scales(axes, TIME, "requests/s")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xlim(0, max(0.1, float(requests.end.max())))


def _times(axes: Axes, requests: Recording) -> None:
    """Response times against due times, as points or as a density, with p50 and p95 by second."""
    milliseconds = numpy.maximum(requests.milliseconds, LEAST_MS)
    if len(requests) > MOST_POINTS:
        _density(axes, requests.due, milliseconds)
    else:
        for name, (one, colour) in _frequent(requests).items():
            style = {"markersize": 2.5, "alpha": 0.5, "color": colour, "rasterized": True, "markeredgewidth": 0}
            axes.plot(one.due, numpy.maximum(one.milliseconds, LEAST_MS), "o", label=name, **style)
    failed = numpy.flatnonzero(requests.outcomes != OK)
    failed = failed[:: max(1, len(failed) // MOST_POINTS + 1)]
    if len(failed):
        style = {"color": COLOURS[1], "markersize": 4, "rasterized": True}
        axes.plot(requests.due[failed], milliseconds[failed], "x", label="failed", **style)
    width, _ = _bins(requests.due)
    for share, line in ((50, "-"), (95, (0, (3, 1)))):
        label = f"p{share} by {width:g} s"
        axes.plot(*by_second(requests, share), color="black", linestyle=line, label=label, **OUTLINED)
    scales(axes, TIME, "response time, ms", log_y=True)
    axes.set_xlim(0, max(0.1, float(requests.end.max())))
    beside(axes, on_top=True)


def _distribution(axes: Axes, requests: Recording) -> None:
    """For each name the share of requests that took at least a given time, which shows the tail."""
    curves = _frequent(requests)
    for name, (one, colour) in (curves | ({ALL: (requests, "black")} if len(curves) > 1 else {})).items():
        ordered = numpy.sort(numpy.maximum(one.milliseconds, LEAST_MS))
        # The points are dense in the tail, where each request counts.
        slower = numpy.unique(numpy.geomspace(1, len(ordered), CURVE_POINTS).astype(int))
        values, left = ordered[len(ordered) - slower], slower / len(ordered) * 100
        style = {"color": colour, "linestyle": "--" if name == ALL else "-", "linewidth": 1.5}
        axes.plot(values, left, label=name, drawstyle="steps-post", **style)
    scales(axes, "response time, ms", "requests that took as long or longer, %", log_x=True, log_y=True)


def _frequent(requests: Recording) -> dict[str, tuple[Recording, str]]:
    """The requests by name with a colour, the most frequent first; those of rare names together at the end."""
    parts = sorted(by_name(requests), key=lambda part: -len(part[1]))
    most = len(parts) if len(parts) <= MOST_NAMES + 1 else MOST_NAMES
    found = {name: (part, COLOURS[index]) for index, (name, part) in enumerate(parts[:most])}
    rest = requests.where(~numpy.isin(requests.names, list(found)))
    return found | ({REST: (rest, GREY)} if len(rest) else {})


def rates(moments: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The middles of bins, and the number of moments per second in each."""
    width, edges = _bins(moments)
    counts, _ = numpy.histogram(moments, edges)
    return edges[:-1] + width / 2, counts / width


def by_second(requests: Recording, share: float) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The middles of non-empty bins, and the percentile of the response times of the requests that were due in each."""
    width, edges = _bins(requests.due)
    order = numpy.argsort(requests.due, kind="stable")
    values = numpy.maximum(requests.milliseconds, LEAST_MS)[order]
    parts = numpy.split(values, numpy.searchsorted(requests.due[order], edges[1:-1]))
    filled = [place for place, part in enumerate(parts) if len(part)]
    found = [numpy.percentile(parts[place], share, method="inverted_cdf") for place in filled]
    return edges[filled] + width / 2, numpy.array(found)


def _bins(moments: numpy.ndarray) -> tuple[float, numpy.ndarray]:
    """The width and edges of bins: whole seconds, or tenths of a second for a short test."""
    unit = 0.1 if moments.max() < SHORT_SECONDS else 1
    first, last = math.floor(moments.min() / unit), math.floor(moments.max() / unit) + 1
    step = max(1, -(-(last - first) // MOST_BINS))
    return step * unit, numpy.arange(first, last + step, step) * unit


def _density(axes: Axes, due: numpy.ndarray, milliseconds: numpy.ndarray) -> None:
    across = numpy.linspace(due.min(), due.max() or 1.0, ACROSS + 1)
    up = numpy.geomspace(milliseconds.min() / 1.01, milliseconds.max() * 1.01, UP + 1)
    counts, *_ = numpy.histogram2d(due, milliseconds, bins=(across, up))
    shown = numpy.ma.masked_less(counts.T, 1)
    image = axes.pcolormesh(across, up, shown, cmap="cividis_r", norm=LogNorm(1, max(2, counts.max())), rasterized=True)
    place = axes.inset_axes((1.02, 0.02, 0.02, 0.45))
    axes.figure.colorbar(image, cax=place, label="requests")
    readable(place.yaxis)
