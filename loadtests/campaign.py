"""Campaigns: TOML tables of steps, which are expanded, run one after the other, and judged."""

import contextlib
import itertools
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas

from loadtests import locusts, recording
from loadtests.chaos import faults as _defined  # noqa: F401 -- they define the faults
from loadtests.chaos.stage import FAULTS, Stage
from loadtests.harness import Harness, in_turns
from loadtests.service import Service, ServiceError
from loadtests.signals import sampled

DIRECTORY = Path(__file__).parent / "campaigns"
KEYS = {"title", "question", "scenarios", "command", "settings", "prepare", "plot", "steps"}
STEP_KEYS = {"name", "users", "options", "each", "repeat", "faults", "hold", "stop"}
# What must hold in a step, and whether the bound is the least value.
HOLDS = {"success": True, "rate": True, "rows": True, "p95": False, "p99": False}
# --quick: the largest value of an option, the most values of each list, and the divisor of numbers of users.
QUICK_SECONDS, QUICK_JOBS, QUICK_VALUES, QUICK_USERS = 3, 20, 2, 50
# Scenarios that --quick replaces, because they take minutes to seed.
LARGE, QUICK_SCENARIO = ("heavy-usage", "worst-case"), "moderate"
# How long faults last that do not end by themselves.
FAULT_SECONDS = 2.0


@dataclass(frozen=True)
class Step:
    """A step of a campaign.

    `users` are user classes with their numbers, or with weights if `options`, which are those of locust, have a number of all
    users. `point` has the values from the lists `each`. `hold` are bounds on the figures of the step.
    With `stop`, steps that come from the same table are left out after the first that failed.
    """

    name: str
    users: Mapping[str, int]
    options: Mapping[str, Any]
    point: Mapping[str, Any]
    hold: Mapping[str, float]
    faults: Sequence[str] = ()
    repeat: int = 1
    stop: bool = False
    table: int = 0


@dataclass(frozen=True)
class Campaign:
    """A campaign.

    `scenarios` are those that the steps use, which are seeded (random layout, seed 1); in the file, the first is the default.
    `command` is that of manage.py: serve or run. `settings` are environment variables of the service, `prepare` are commands of
    manage.py that are run before. `plot` names the columns x, y and series.
    """

    title: str
    question: str
    steps: Sequence[Step]
    scenarios: Sequence[str] = ()
    command: str = "serve"
    settings: Mapping[str, str] = field(default_factory=dict)
    prepare: Sequence[Sequence[str]] = ()
    plot: Mapping[str, str] = field(default_factory=dict)


def find(name: str) -> Path:
    """The file of a campaign by its name, or a path. Raises `ServiceError` if there is none."""
    path = Path(name) if name.endswith(".toml") else DIRECTORY / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in DIRECTORY.glob("*.toml")))
        raise ServiceError(f"there is no campaign {name}: the campaigns are {known}; or give the path of a TOML file")
    return path


def load(path: Path, *, quick: bool = False) -> Campaign:
    """Read a campaign. Raises `ServiceError` in one line for a file with a mistake.

    With `quick`, it takes seconds instead of minutes: fewer users and values, shorter steps, no repetitions.
    """
    try:
        table = tomllib.loads(path.read_text())
        _check_keys(table, KEYS)
        steps = [step for place, one in enumerate(table["steps"]) for step in _expanded(one, place, table, quick=quick)]
        known = {name: table[name] for name in KEYS - {"steps"} if name in table}
        campaign = Campaign(**known, steps=steps)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise ServiceError(f"{path}: {reason}") from error
    used = dict.fromkeys(step.options["scenario"] for step in steps)
    return Campaign(**vars(campaign) | {"scenarios": list(used)})


def _check_keys(table: Mapping[str, Any], known: set[str]) -> None:
    if unknown := set(table) - known:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}")


def _expanded(one: Mapping[str, Any], place: int, table: Mapping[str, Any], *, quick: bool) -> Iterator[Step]:
    """The steps of a table: one for each combination of the values in its lists `each`."""
    _check_keys(one, STEP_KEYS)
    _check_keys(one.get("hold", {}), set(HOLDS))
    if unknown := set(one.get("faults", ())) - {fault.name for fault in FAULTS if not fault.has_clients}:
        raise ValueError(f"there is no such fault for campaigns: {', '.join(sorted(unknown))}")
    each = {name: values[:QUICK_VALUES] if quick else values for name, values in one.get("each", {}).items()}
    for values in itertools.product(*each.values()):
        point = dict(zip(each, values, strict=True))
        options = {name: _filled(value, point) for name, value in one.get("options", {}).items()}
        users = {kind: int(_filled(number, point)) for kind, number in one["users"].items()}
        users = {kind: number for kind, number in users.items() if number}
        scenarios = table.get("scenarios", ["tiny"])
        options = {"scenario": scenarios[0], "layout": "random", "users": sum(users.values())} | options
        if "seconds" in options:
            options["run-time"] = f"{options.pop('seconds')}s"
        if quick:
            options = _quick(options)
        yield Step(
            name=_filled(one["name"], point),
            users=users,
            options=options,
            point=point,
            hold=one.get("hold", {}),
            faults=one.get("faults", ()),
            repeat=1 if quick else one.get("repeat", 1),
            stop=one.get("stop", False),
            table=place,
        )


def _filled(value: Any, point: Mapping[str, Any]) -> Any:
    return value.format(**point) if isinstance(value, str) else value


def _quick(options: dict[str, Any]) -> dict[str, Any]:
    scenario = QUICK_SCENARIO if options["scenario"] in LARGE else options["scenario"]
    quick = options | {"users": max(2, int(options["users"]) // QUICK_USERS), "scenario": scenario}
    for name, most in (("jobs-per-user", QUICK_JOBS), ("iterations", 2)):
        if name in options:
            quick[name] = min(most, int(options[name]))
    if "run-time" in options or "jobs-per-user" not in options:
        quick["run-time"] = f"{QUICK_SECONDS}s"
    return quick | ({"pause": "0.1"} if "pause" in options or "shape" in options else {})


@dataclass
class Result:
    """A step that was run: its recording, its signals, its figures, and why it failed."""

    step: Step
    requests: pandas.DataFrame
    signals: pandas.DataFrame
    figures: dict[str, Any]
    failures: list[str]


def run(campaign: Campaign, harness: Harness, url: str, service: Service | None, output: Path) -> Iterator[Result]:
    """Run all steps, repetitions in turns. Raises `ServiceError` if locust or a fault fails."""
    stopped: set[int] = set()
    most = max(step.repeat for step in campaign.steps)
    for number, step in in_turns(campaign.steps, most):
        if number > step.repeat or step.table in stopped:
            continue
        label = f"{step.name}, repetition {number} of {step.repeat}" if step.repeat > 1 else step.name
        harness.say(label)
        directory = output / "runs" / "".join(letter if letter.isalnum() else "-" for letter in label)
        with sampled(service) as signals, _faults(step, service):
            requests = locusts.run(url, step.users, step.options, directory)
        frame = signals.frame
        frame.to_csv(directory / "signals.csv", index=False)
        found = {"step": step.name, "repetition": number, **step.point, **figures(requests, frame)}
        result = Result(step, requests, frame, found, failures(step, found))
        if result.failures:
            harness.say(f"  failed: {'; '.join(result.failures)}")
            stopped |= {step.table} if step.stop else set()
        yield result


@contextlib.contextmanager
def _faults(step: Step, service: Service | None) -> Iterator[None]:
    """Inject the faults of a step one after the other inside the block. Raises `ServiceError` at its end if one fails."""
    if step.faults and service is None:
        raise ServiceError("faults can only be injected into a local service, not with --host")
    causes, over = [fault for name in step.faults for fault in FAULTS if fault.name == name], threading.Event()

    def work() -> None:
        for fault in causes:
            # So that the report shows the time before and after it.
            if not over.wait(FAULT_SECONDS):
                fault.cause(Stage(service, FAULT_SECONDS))

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            yield
        finally:
            over.set()
    if error := done.exception():
        raise ServiceError(f"a fault could not be injected: {error}") from error


def figures(requests: pandas.DataFrame, signals: pandas.DataFrame) -> dict[str, Any]:
    """The figures of a step.

    `rate` are correct responses per second, from the first request to the last response. `success` is the percentage of
    correct responses, also of requests that were not sent. Times are milliseconds from when a request was due. `rows` is the
    mean number of rows of lookups. `busiest` is the largest number of responses in one second. `jobs` are correct jobs per
    second. `late` is how late the generator was for 99 % of the jobs, in milliseconds. CPU is in cores.
    """
    jobs = requests[requests["method"] == recording.JOB]
    sent = requests[requests["method"] != recording.JOB]
    seconds = max(requests["end"].max(), 0.001)
    counts = sent["outcome"].value_counts()
    unsent = int((jobs["outcome"] == recording.NOT_SENT).sum())
    times = sent["ms"].quantile([0.5, 0.95, 0.99]) if len(sent) else pandas.Series([float("nan")] * 3)
    rows = sent.loc[sent["rows"] >= 0, "rows"]
    found = {
        "requests": len(sent),
        "rate": counts.get(recording.OK, 0) / seconds,
        "busiest": int(sent["end"].astype(int).value_counts().max()) if len(sent) else 0,
        "jobs": int((jobs["outcome"] == recording.OK).sum()) / seconds,
        "success": 100 * counts.get(recording.OK, 0) / max(1, len(sent) + unsent),
        **dict(zip(("p50", "p95", "p99"), times, strict=True)),
        "max": sent["ms"].max(),
        "rows": rows.mean() if len(rows) else None,
        "late": (jobs["begin"] - jobs["due"]).quantile(0.99) * 1000 if len(jobs) else None,
        "seconds": seconds,
    }
    found |= {outcome: int(counts[outcome]) for outcome in recording.OUTCOMES[1:] if counts.get(outcome)}
    if unsent:
        found[recording.NOT_SENT] = unsent
    return found | signals.filter(regex=r"^cpu\.").mean().to_dict()


def failures(step: Step, found: Mapping[str, Any]) -> list[str]:
    """Why a step failed: wrong responses, errors that load does not excuse, and bounds that do not hold."""
    reasons = [f"{outcome}: {found[outcome]:,}" for outcome in recording.FAULTS if found.get(outcome)]
    for name, bound in step.hold.items():
        value = found.get(name)
        if value is None or (value < bound if HOLDS[name] else not value <= bound):
            shown = "unknown" if value is None else f"{value:,.3g}"
            reasons.append(f"{name} is {shown}, not {'at least' if HOLDS[name] else 'at most'} {bound:,}")
    return reasons


def started_at() -> str:
    """The time, as the name of a directory."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
