"""The plot of the resources of server and generator during a run, below its requests and response times."""

from collections.abc import Iterator

import numpy
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loadtests.reporting.plots import COLOURS, WIDTH, drawn, readable
from loadtests.reporting.result import Plot, Run
from loadtests.reporting.timelines import TIME, by_second, rates

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


def plot_of(run: Run) -> Plot:
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
