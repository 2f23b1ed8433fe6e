"""Plots of a run: requests against time, the distribution of response times, and resources of server and generator."""

import math
from collections.abc import Iterator

import numpy
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke

from loadtests.recording import outcome
from loadtests.recording.outcome import OK
from loadtests.recording.reading import Recording
from loadtests.reporting.plots import COLOURS, GREY, WIDTH, beside, drawn, plot, readable, scales
from loadtests.reporting.result import Plot, Run
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
# A panel shows the series with the largest maxima; with more than HALF_SERIES the legend has two columns.
MOST_SERIES, HALF_SERIES = 12, 6
MEBI, MEGA = 2**20, 10**6
# This panel is shown even if all values are 0.
ERRORS = "errors/s"
TIMES = "response\ntime, ms"
# A program has the same colour in all panels.
PROGRAMS = (
    "gunicorn-lookups",
    "postgres",
    "nginx",
    "gunicorn-others",
    "pgbouncer",
    "generator",
    "machine",
    "serve",
    "compiler",
    "other",
)
# The label of PostgreSQL's active connections that do not wait.
COMPUTING = "nothing: computing"
PANEL_HEIGHT = 1.45
# The columns of a panel by their prefix: the label of the panel, and the unit of its axis. A column belongs to the
# first prefix that matches.
PANELS = {
    "cpu.machine": ("CPU, cores", 1),
    "cpu.": ("CPU, cores", 1),
    "memory.machine": ("memory of the\nmachine, MiB", MEBI),
    "memory.": ("memory, MiB", MEBI),
    "files.": ("open files", 1),
    "threads.": ("threads", 1),
    "connections.": ("connections\nof PostgreSQL", 1),
    "waits.": ("waits in\nPostgreSQL", 1),
    "pgbouncer.": ("PgBouncer", 1),
    "in_progress.": ("in progress", 1),
    "queue_ms.": ("wait for a\nthread, ms", 1),
    "responses.": ("responses/s", 1),
    "lookups.": ("lookups/s", 1),
    "errors.": (ERRORS, 1),
    "refusals.": ("refused/s", 1),
    "disk.busy": ("disk busy,\nshare", 1),
    "disk.": ("disk, MB/s", MEGA),
    "network.": ("network, MB/s", MEGA),
}

# Times and values by name.
Series = dict[str, tuple[numpy.ndarray, numpy.ndarray]]


def plots_of(run: Run) -> list[Plot]:
    """The plots of frequency, response times, distribution and resources; there must be at least one request."""
    requests = run.recording.requests
    return [
        plot("Frequency against time", lambda axes: _frequency(axes, requests)),
        plot("Response time against time", lambda axes: _times(axes, requests)),
        plot("Distribution of response times", lambda axes: _distribution(axes, requests)),
        _resources(run),
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


def _resources(run: Run) -> Plot:
    """Panels with a common time axis, of all signals that have values; requests and response times are at the top."""
    panels = list(_panels(run))

    def make() -> Figure:
        size = (WIDTH, 0.7 + PANEL_HEIGHT * len(panels))
        figure, grid = pyplot.subplots(len(panels), 1, sharex=True, squeeze=False, figsize=size)
        for axes, (label, series, stacked) in zip(grid.flat, panels, strict=True):
            _draw(axes, label, series, stacked=stacked)
        grid.flat[0].set_title("Load and resources", loc="left", fontsize=10, fontweight="bold")
        grid.flat[-1].set_xlabel(TIME)
        grid.flat[-1].set_xlim(0, max(float(run.recording.end.max()), 0.1))
        figure.align_ylabels()
        figure.subplots_adjust(hspace=0.18)
        return figure

    return drawn("Load and resources", make)


def _panels(run: Run) -> Iterator[tuple[str, Series, bool]]:
    """The label and the series of each panel, and whether they are stacked."""
    requests = run.recording.requests
    yield "requests/s", {"ended": rates(requests.end)}, False
    yield TIMES, {f"p{share}": by_second(requests, share) for share in (50, 95, 99)}, False
    for prefix, (label, unit) in PANELS.items():
        series = _series(run, prefix, unit)
        if prefix == "cpu.machine":
            series |= _generator(run)
        if series and (label == ERRORS or any(values.any() for _, values in series.values())):
            yield label, dict(sorted(series.items())) if prefix == "cpu." else series, prefix == "cpu."


def _series(run: Run, prefix: str, unit: float) -> Series:
    """The largest columns of a panel; columns that are always 0 are omitted, unless all are."""
    found: Series = {}
    for name in dict.fromkeys(name for row in run.signals.rows for name in row):
        if next((other for other in PANELS if name.startswith(other)), None) == prefix:
            when, values = run.signals.column(name)
            short = COMPUTING if name == "waits.none" else name.split(".", 1)[1].replace(".", " ")
            found[short] = numpy.array(when) - run.recording.origin, numpy.array(values) / unit
    found = {name: one for name, one in found.items() if one[1].any()} or found
    most = sorted(found, key=lambda name: -found[name][1].max())[:MOST_SERIES]
    return {name: one for name, one in found.items() if name in most}


def _generator(run: Run) -> Series:
    """The CPU of all generator processes, by second."""
    samples = run.recording.samples
    if not samples:
        return {}
    seconds = numpy.floor([sample.time - run.recording.origin for sample in samples]).astype(int)
    places, index = numpy.unique(seconds, return_inverse=True)
    return {"generator": (places + 0.5, numpy.bincount(index, [sample.cpu for sample in samples]))}


def _draw(axes: Axes, label: str, series: Series, *, stacked: bool) -> None:
    if stacked:
        _stack(axes, series)
    else:
        for index, (name, (places, values)) in enumerate(series.items()):
            axes.plot(places, values, label=name, linewidth=1.2, color=_colour(name, index))
    axes.set_ylabel(label)
    if label == TIMES:
        axes.set_yscale("log")
        readable(axes.yaxis)
    else:
        axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
    size = {"fontsize": 7.5, "ncols": 1} if len(series) <= HALF_SERIES else {"fontsize": 6.5, "ncols": 2}
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, **size)


def _stack(axes: Axes, series: Series) -> None:
    """Stack the series; user and system time of a program have the same colour, system time is hatched."""
    programs = list(dict.fromkeys(name.rsplit(" ", 1)[0] for name in series))
    places = numpy.unique(numpy.concatenate([one for one, _ in series.values()]))
    below = numpy.zeros(len(places))
    for name, (when, values) in series.items():
        top = below + numpy.interp(places, when, values)
        program = name.rsplit(" ", 1)[0]
        colour = _colour(program, programs.index(program))
        hatch = {"hatch": "////", "edgecolor": "white"} if name.endswith(" system") else {}
        axes.fill_between(places, below, top, facecolor=colour, linewidth=0, label=name, **hatch)
        below = top


def _colour(name: str, index: int) -> str:
    return COLOURS[(PROGRAMS.index(name) if name in PROGRAMS else index) % len(COLOURS)]
