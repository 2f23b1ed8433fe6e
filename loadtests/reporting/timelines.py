"""Plots of the requests of a run: their number and response times against time, and the distribution of the times."""

import math

import numpy

from loadtests.recording import outcome
from loadtests.recording.outcome import OK
from loadtests.recording.reading import Recording
from loadtests.reporting.figures import percentile
from loadtests.reporting.plots import COLOURS, GREY, OUTLINE, blank, scales
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
TIME = "time into the test, s"


def plots_of(requests: Recording) -> list[Plot]:
    """The plots of frequency, response times and their distribution; there must be at least one request."""
    return [_frequency(requests), _times(requests), _distribution(requests)]


def _frequency(requests: Recording) -> Plot:
    """The number of requests that ended per second, by outcome, and the mean of all."""
    plot, axes = blank("Frequency against time")
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
    return plot


def _times(requests: Recording) -> Plot:
    """Response times against due times, as points or as a density, with p50 and p95 by second."""
    plot, axes = blank("Response time against time")
    if len(requests) > MOST_POINTS:
        bins = {"gridsize": (ACROSS, UP), "yscale": "log", "bins": "log", "mincnt": 1, "linewidths": 0}
        image = axes.hexbin(requests.due, requests.milliseconds, cmap="cividis_r", rasterized=True, **bins)
        axes.figure.colorbar(image, cax=axes.inset_axes((1.02, 0.02, 0.02, 0.45)), label="requests")
    else:
        for name, (one, colour) in _frequent(requests).items():
            style = {"markersize": 2.5, "alpha": 0.5, "color": colour, "rasterized": True, "markeredgewidth": 0}
            axes.plot(one.due, one.milliseconds, "o", label=name, **style)
    failed = requests.where(requests.outcomes != OK)
    if len(failed):
        style = {"color": COLOURS[1], "markersize": 4, "rasterized": True}
        axes.plot(failed.due, failed.milliseconds, "x", label="failed", **style)
    width, _ = _bins(requests.due)
    for share, line in ((50, "-"), (95, (0, (3, 1)))):
        style = {"color": "black", "linewidth": 1.5, "path_effects": OUTLINE}
        axes.plot(*by_second(requests, share), linestyle=line, label=f"p{share} by {width:g} s", **style)
    scales(axes, TIME, "response time, ms", log_y=True)
    return plot


def _distribution(requests: Recording) -> Plot:
    """For each name the share of requests that took at least a given time, which shows the tail."""
    plot, axes = blank("Distribution of response times")
    curves = _frequent(requests)
    for name, (one, colour) in (curves | ({ALL: (requests, "black")} if len(curves) > 1 else {})).items():
        ordered = numpy.sort(one.milliseconds)
        # The points are dense in the tail, where each request counts.
        slower = numpy.unique(numpy.geomspace(1, len(ordered), CURVE_POINTS).astype(int))
        values, left = ordered[len(ordered) - slower], slower / len(ordered) * 100
        style = {"color": colour, "linestyle": "--" if name == ALL else "-", "linewidth": 1.5}
        axes.plot(values, left, label=name, drawstyle="steps-post", **style)
    scales(axes, "response time, ms", "requests that took as long or longer, %", log_x=True, log_y=True)
    return plot


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
    return edges[:-1] + width / 2, numpy.histogram(moments, edges)[0] / width


def by_second(requests: Recording, share: float) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The middles of non-empty bins, and the percentile of the response times of the requests that were due in each."""
    width, edges = _bins(requests.due)
    bins = numpy.digitize(requests.due, edges)
    order = numpy.argsort(bins, kind="stable")
    filled, starts = numpy.unique(bins[order], return_index=True)
    parts = numpy.split(requests.milliseconds[order], starts[1:])
    return edges[filled - 1] + width / 2, numpy.array([percentile(part, share) for part in parts])


def _bins(moments: numpy.ndarray) -> tuple[float, numpy.ndarray]:
    """The width and edges of bins from 0: whole seconds, or tenths of a second for a short test."""
    width = 0.1 if moments.max() < SHORT_SECONDS else math.ceil(moments.max() / MOST_BINS)
    return width, numpy.arange(math.floor(moments.max() / width) + 2) * width
