"""The plot of the resources of server and generator during a run, below its requests and response times."""

from collections.abc import Iterator

import numpy
from matplotlib.figure import Figure

from loadtests.reporting.plots import COLOURS, WIDTH, readable
from loadtests.reporting.result import Plot, Run
from loadtests.reporting.timelines import TIME, by_second, rates

# A panel shows the series with the largest maxima.
MOST_SERIES = 12
MEBI, MEGA = 2**20, 10**6
TIMES = "response\ntime, ms"
# A program has the same colour in all panels.
PROGRAMS = ("granian", "postgres", "nginx", "gunicorn", "generator")
PROGRAMS += ("machine", "serve", "compiler", "other", "harness")
PANEL_HEIGHT = 1.45
# The columns of a panel by their prefix: the label of the panel, and the unit of its axis. A column belongs to the
# first prefix that matches.
PANELS = {
    "cpu.": ("CPU, cores", 1),
    "memory.machine": ("memory of the\nmachine, MiB", MEBI),
    "memory.": ("memory, MiB", MEBI),
    "files.": ("open files", 1),
    "threads.": ("threads", 1),
    "connections.": ("connections\nof PostgreSQL", 1),
    "waits.": ("waits in\nPostgreSQL", 1),
    "in_progress": ("in progress", 1),
    "queue_ms": ("wait for a\nthread, ms", 1),
    "responses.": ("responses/s", 1),
    "lookups.": ("lookups/s", 1),
    "errors.": ("errors/s", 1),
    "disk.busy": ("disk busy,\nshare", 1),
    "disk.": ("disk, MB/s", MEGA),
    "network.": ("network, MB/s", MEGA),
}

# Times and values by name.
Series = dict[str, tuple[numpy.ndarray, numpy.ndarray]]


def plot_of(run: Run) -> Plot:
    """Panels with a common time axis, of all signals that have values; requests and response times are at the top."""
    panels = list(_panels(run))
    figure = Figure(figsize=(WIDTH, 0.7 + PANEL_HEIGHT * len(panels)))
    grid = figure.subplots(len(panels), sharex=True)
    for axes, (label, series) in zip(grid, panels, strict=True):
        for index, (name, (places, values)) in enumerate(series.items()):
            axes.plot(places, values, label=name, linewidth=1.2, color=_colour(name, index))
        axes.set_ylabel(label)
        if label == TIMES:
            axes.set_yscale("log")
            readable(axes.yaxis)
        else:
            axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=6.5)
    grid[0].set_title("Load and resources", loc="left", fontsize=10, fontweight="bold")
    grid[-1].set_xlabel(TIME)
    figure.align_ylabels()
    figure.subplots_adjust(hspace=0.18)
    return Plot("Load and resources", figure)


def _panels(run: Run) -> Iterator[tuple[str, Series]]:
    """The label and the series of each panel, without columns that are always 0."""
    requests = run.recording.requests
    yield "requests/s", {"ended": rates(requests.end)}
    yield TIMES, {f"p{share}": by_second(requests, share) for share in (50, 95, 99)}
    columns = _columns(run)
    for prefix, (label, unit) in PANELS.items():
        names = [name for name in columns if name.startswith(prefix) and columns[name][1].any()]
        most = sorted(names, key=lambda name: -columns[name][1].max())[:MOST_SERIES]
        found = {name: columns.pop(name) for name in names if name in most}
        if found:
            yield label, {name.rpartition(".")[2]: (when, values / unit) for name, (when, values) in found.items()}


def _columns(run: Run) -> Series:
    """The columns of the signals, with the CPU of all generator processes by their own samples, which are always known."""
    origin, samples = run.recording.origin, run.recording.samples
    names = dict.fromkeys(name for row in run.signals.rows for name in row)
    found = {name: tuple(map(numpy.array, run.signals.column(name))) for name in names}
    columns = {name: (when - origin, values) for name, (when, values) in found.items()}
    if samples:
        seconds = numpy.floor([sample.time - origin for sample in samples]).astype(int)
        places, index = numpy.unique(seconds, return_inverse=True)
        columns["cpu.generator"] = places + 0.5, numpy.bincount(index, [sample.cpu for sample in samples])
    return columns


def _colour(name: str, index: int) -> str:
    return COLOURS[(PROGRAMS.index(name) if name in PROGRAMS else index) % len(COLOURS)]
