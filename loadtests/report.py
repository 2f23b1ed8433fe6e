"""The report of measurements: one HTML page with tables and plots, and the figures as CSV beside it."""

import base64
import io
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import matplotlib.style
import pandas
import psutil
from matplotlib.figure import Figure

from cdb.env import ROOT
from loadtests import recording

# Distinguishable with colour blindness, and in grey.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d31", "#7f7f7f", "#a50026")
SIZE = (9, 3.6)
# More timelines would make a page that no browser opens.
MOST_TIMELINES = 40
TEMPLATE = jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True)
matplotlib.style.use(Path(__file__).with_name("plots.mplstyle"))
matplotlib.rcParams["axes.prop_cycle"] = matplotlib.cycler(color=COLOURS)


def write(
    directory: Path,
    title: str,
    figures: pandas.DataFrame,
    *,
    verdict: str = "",
    is_good: bool | None = None,
    texts: Sequence[str] = (),
    plots: Mapping[str, Figure] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write `report.html` and `figures.csv` into a directory, and return the path of the page.

    `verdict` is the sentence at the top, red if not `is_good`. `texts` are paragraphs, `plots` have titles.
    """
    directory.mkdir(parents=True, exist_ok=True)
    figures.to_csv(directory / "figures.csv", index=False)
    shown = figures.dropna(axis="columns", how="all")
    page = TEMPLATE.get_template("report.html").render(
        title=title,
        verdict=verdict,
        look={True: "good", False: "bad", None: ""}[is_good],
        texts=texts,
        table=shown.to_html(index=False, border=0, na_rep="", float_format=number),
        plots={name: _png(figure) for name, figure in (plots or {}).items()},
        facts=machine() | dict(settings or {}),
    )
    path = directory / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def number(value: float) -> str:
    """A number with three digits, as people read it."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _png(figure: Figure) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110, bbox_inches="tight")
    return base64.b64encode(content.getvalue()).decode()


def lines(figures: pandas.DataFrame, x: str, y: str, series: str = "") -> Figure:
    """Medians of the repetitions of a figure, with a line for each value of `series`; bars if `x` is not a number."""
    figure = Figure(figsize=SIZE)
    axes = figure.subplots()
    keys = [x, series] if series else [x]
    found = figures.groupby(keys, sort=False)[y].median()
    found = found.unstack(sort=False) if series else found.to_frame()
    if pandas.api.types.is_numeric_dtype(found.index):
        found.sort_index().plot(ax=axes, marker="o", ylabel=y)
    else:
        found.plot.bar(ax=axes, ylabel=y, rot=0 if len(found) < 8 else 60)
    axes.set_ylim(bottom=0)
    if series:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    else:
        axes.get_legend().remove()
    return figure


def timeline(requests: pandas.DataFrame, signals: pandas.DataFrame) -> Figure:
    """Responses per second by outcome, response times, and CPU by program, against the seconds since the first request."""
    sent = requests[requests["method"] != recording.JOB]
    figure = Figure(figsize=(SIZE[0], 5.4))
    rates, times, cpu = figure.subplots(3, 1, sharex=True)
    second = sent["end"].astype(int)
    seconds = range(int(second.max()) + 1)
    counts = sent.groupby([second, sent["outcome"].astype(str)]).size().unstack(fill_value=0)
    counts.reindex(seconds, fill_value=0).plot(ax=rates, drawstyle="steps-post", ylabel="responses/s")
    quantiles = sent.groupby(second)["ms"].quantile([0.5, 0.95, 0.99]).unstack()
    quantiles.columns = ["p50", "p95", "p99"]
    quantiles.plot(ax=times, ylabel="ms", logy=True, marker=".")
    programs = signals.filter(regex=r"^cpu\.")
    if len(programs.columns):
        programs.index = signals["time"] - signals["time"].iloc[0]
        programs.rename(columns=lambda name: name.removeprefix("cpu.")).plot(ax=cpu, ylabel="cores")
    cpu.set_xlabel("seconds")
    for axes in (rates, times, cpu):
        if axes.get_legend():
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    rates.set_ylim(bottom=0)
    return figure


def machine() -> dict[str, str]:
    """The facts about the environment of a measurement."""
    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(": ")[2] for line in cpuinfo if line.startswith("model name")]
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": _commit(),
        "processor": models[0] if models else platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "load average before": f"{os.getloadavg()[0]:.2f}",
        "Python": platform.python_version(),
    }


def _commit() -> str:
    def output(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True).stdout.strip()

    try:
        is_changed = bool(output("status", "--porcelain", "--untracked-files=no"))
        return output("log", "-1", "--format=%h %s") + (", with uncommitted changes" if is_changed else "")
    except FileNotFoundError:
        return "unknown"
