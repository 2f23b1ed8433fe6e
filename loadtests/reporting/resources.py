"""The plot of the resources that server and generator used during a run: panels with a common time axis."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loadtests.reporting.canvas import COLOURS, WIDTH, drawn, readable
from loadtests.reporting.findings import Run
from loadtests.reporting.result import Plot
from loadtests.reporting.timelines import TIME, by_second, rates

# A panel shows the series with the largest maxima; with more than HALF_SERIES the legend has two columns.
MOST_SERIES, HALF_SERIES = 12, 6
MEBI, MEGA = 2**20, 10**6
# This panel is shown even if all values are 0.
ERRORS = "errors/s"
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
    "other",
    "rig",
)
# The label of PostgreSQL's active connections that do not wait.
COMPUTING = "nothing: computing"
PANEL_HEIGHT = 1.45

Series = tuple[numpy.ndarray, numpy.ndarray]


@dataclass(frozen=True)
class Panel:
    """The series of a panel by name, with the label of the vertical axis; separate lines, or stacked."""

    label: str
    series: dict[str, Series]
    stacked: bool = False
    logarithmic: bool = False


# The label of a panel, the prefix of its columns, and the unit of its axis. A column belongs to the first
# prefix that matches.
COLUMNS = (
    ("CPU, cores", "cpu.machine", 1),
    ("CPU, cores", "cpu.", 1),
    ("memory of the\nmachine, MiB", "memory.machine", MEBI),
    ("memory, MiB", "memory.", MEBI),
    ("open files", "files.", 1),
    ("threads", "threads.", 1),
    ("connections\nof PostgreSQL", "connections.", 1),
    ("waits in\nPostgreSQL", "waits.", 1),
    ("PgBouncer", "pgbouncer.", 1),
    ("in progress", "in_progress.", 1),
    ("wait for a\nthread, ms", "queue_ms.", 1),
    ("answers/s", "answers.", 1),
    ("lookups/s", "lookups.", 1),
    (ERRORS, "errors.", 1),
    ("refused/s", "refusals.", 1),
    ("disk busy,\nshare", "disk.busy", 1),
    ("disk, MB/s", "disk.", MEGA),
    ("network, MB/s", "network.", MEGA),
)


def plot_of(run: Run) -> Plot:
    """The plot with all panels that have values; requests and response times are at the top."""
    panels = list(_panels(run))

    def make() -> Figure:
        size = (WIDTH, 0.7 + PANEL_HEIGHT * len(panels))
        figure, grid = pyplot.subplots(len(panels), 1, sharex=True, squeeze=False, figsize=size)
        for axes, panel in zip(grid.flat, panels, strict=True):
            _draw(axes, panel)
        grid.flat[0].set_title("Load and resources", loc="left", fontsize=10, fontweight="bold")
        grid.flat[-1].set_xlabel(TIME)
        grid.flat[-1].set_xlim(0, max(float(run.recording.end.max()), 0.1))
        figure.align_ylabels()
        figure.subplots_adjust(hspace=0.18)
        return figure

    return drawn("Load and resources", make)


def _panels(run: Run) -> Iterator[Panel]:
    requests = run.recording.requests
    yield Panel("requests/s", {"ended": rates(requests.end, requests.end)})
    times = {f"p{share}": by_second(requests, share) for share in (50, 95, 99)}
    yield Panel("response\ntime, ms", times, logarithmic=True)
    found = {prefix: _series(run, prefix, unit) for _, prefix, unit in COLUMNS}
    if whole := found["cpu.machine"] | _generator(run):
        yield Panel("CPU, cores", whole)
    for label, prefix, _ in COLUMNS[1:]:
        series = found[prefix]
        if series and (label == ERRORS or any(values.any() for _, values in series.values())):
            stacked = prefix == "cpu."
            yield Panel(label, dict(sorted(series.items())) if stacked else series, stacked)


def _series(run: Run, prefix: str, unit: float) -> dict[str, Series]:
    """The largest columns of a panel; columns that are always 0 are omitted, unless all are."""
    found = {}
    for name in dict.fromkeys(name for row in run.signals.rows for name in row):
        if next((other for _, other, _ in COLUMNS if name.startswith(other)), None) == prefix:
            when, values = run.signals.column(name)
            short = name.split(".", 1)[1].replace(".", " ")
            short = COMPUTING if name == "waits.none" else short
            found[short] = numpy.array(when) - run.recording.origin, numpy.array(values) / unit
    risen = {name: one for name, one in found.items() if one[1].any()}
    found = risen or found
    most = sorted(found, key=lambda name: -found[name][1].max())[:MOST_SERIES]
    return {name: one for name, one in found.items() if name in most}


def _generator(run: Run) -> dict[str, Series]:
    """The CPU of all generator processes, by second."""
    samples = run.recording.samples
    if not samples:
        return {}
    seconds = numpy.floor([sample.time - run.recording.origin for sample in samples]).astype(int)
    places = numpy.unique(seconds)
    cpu = numpy.array([sample.cpu for sample in samples])
    return {"generator": (places + 0.5, numpy.array([cpu[seconds == place].sum() for place in places]))}


def _draw(axes: Axes, panel: Panel) -> None:
    if panel.stacked:
        _stack(axes, panel.series)
    else:
        for index, (name, (places, values)) in enumerate(panel.series.items()):
            axes.plot(places, values, label=name, linewidth=1.2, color=_colour(name, index))
    axes.set_ylabel(panel.label)
    if panel.logarithmic:
        axes.set_yscale("log")
        readable(axes.yaxis)
    else:
        axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
    count = len(panel.series)
    place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False}
    axes.legend(fontsize=7.5 if count <= HALF_SERIES else 6.5, ncols=1 if count <= HALF_SERIES else 2, **place)


def _stack(axes: Axes, series: dict[str, Series]) -> None:
    """Stack the series; user and system time of a program have the same colour, system time is hatched."""
    programs = list(dict.fromkeys(name.rsplit(" ", 1)[0] for name in series))
    places = numpy.unique(numpy.concatenate([one for one, _ in series.values()]))
    below = numpy.zeros(len(places))
    for name, (when, values) in series.items():
        top = below + numpy.interp(places, when, values)
        program = name.rsplit(" ", 1)[0]
        colour = _colour(program, programs.index(program))
        look = {"hatch": "////", "edgecolor": "white"} if name.endswith(" system") else {}
        axes.fill_between(places, below, top, facecolor=colour, linewidth=0, label=name, **look)
        below = top


def _colour(name: str, index: int) -> str:
    return COLOURS[(PROGRAMS.index(name) if name in PROGRAMS else index) % len(COLOURS)]
