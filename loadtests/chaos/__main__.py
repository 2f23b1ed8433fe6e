"""Inject faults into the service under load, and report their effects on clients (python -m loadtests.chaos)."""

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas
from matplotlib.figure import Figure

from cdb import env
from cdb_rest.management.quantities import IN_SECONDS
from loadtests import report, usage
from loadtests.chaos import clients, cluster, cluster_faults, faults  # noqa: F401 -- they define the faults
from loadtests.chaos.clients import PROCESSES, ClientProcesses, Scene
from loadtests.chaos.log import ANSWERED, DROPPED, Log
from loadtests.chaos.oracle import STALE, WRONG, FrozenTag, WrittenTag
from loadtests.chaos.stage import CLUSTER_FAULTS, FAULTS, Fault, Place, SkippedError, Stage
from loadtests.client import Client, Response
from loadtests.recording import REFUSED
from loadtests.service import INTERRUPTED, Service, ServiceError, Settings, kill, manage, prepare_process, running

FREEZE_SECONDS, QUICK_SECONDS = 30.0, 8.0
SCENARIO = "tiny-moderate"
FROZEN = "frozen"
READERS, WRITERS, FREEZERS = 8, 4, 2
# Together some 250 requests per second, which leaves CPU time for the faults on a machine with two cores.
READ_PAUSE_SECONDS, WRITE_PAUSE_SECONDS, NESTED_PAUSE_SECONDS = 0.06, 0.1, 0.5
BEFORE_SECONDS, AFTER_SECONDS = 2.0, 5.0
SETTLE_SECONDS = 60
EXPLANATION = (
    "Clients read and write, and check every response and at the end every row. dropped: no complete response; wrong: a "
    "response that is neither correct nor a valid 504; stale: a response that is older than what was acknowledged before its "
    "request; lost: acknowledged rows that are missing, or rows that are there twice; reconnected: kept connections that were "
    "closed while idle; slowest, lasted and recovery in seconds: the longest response, the time from the fault until the failed "
    "component was back, or another one in its place, and the time from then until the last request that was not answered."
)


@dataclass(frozen=True)
class Played:
    """The results of a fault.

    `log` has those of the clients. `began` and `returned` are when the fault began and when the failed component was
    back, by `time.monotonic`. `lost` describes rows that are lost, `skipped` is the reason why the fault could not be
    injected.
    """

    fault: Fault
    log: Log
    began: float = 0.0
    returned: float = 0.0
    lost: Sequence[str] = ()
    skipped: str = ""

    @cached_property
    def cells(self) -> dict[str, Any]:
        """The row of the table, as `EXPLANATION` describes it."""
        log = self.log
        counts = Counter(record.outcome for record in log.records) + log.counted
        late = [record.begin - self.returned for record in log.records if record.outcome != ANSWERED]
        whole = [record.end - record.begin for record in log.records if record.outcome != DROPPED]
        return {
            "fault": self.fault.name,
            "requests": counts.total(),
            **{outcome: counts[outcome] for outcome in (ANSWERED, REFUSED, DROPPED, WRONG, STALE)},
            "lost": len(self.lost),
            "reconnected": log.reconnected,
            "slowest": round(max([0.0, *whole]), 2),
            "lasted": round(self.returned - self.began, 2),
            "recovery": round(max([0.0, *late]), 2),
            "skipped": self.skipped,
        }

    @property
    def is_good(self) -> bool:
        """Whether nothing was wrong or lost, no connection ended that had to last, and the service recovered in time."""
        cells, log = self.cells, self.log
        dropped = log.counted[DROPPED] + sum(
            record.outcome == DROPPED
            and not (self.fault.ends_connections and record.begin < self.returned + self.fault.recovery_seconds)
            for record in log.records
        )
        is_bad = dropped or cells[WRONG] or cells[STALE] or cells["lost"]
        return not is_bad and cells["recovery"] <= self.fault.recovery_seconds

    def __str__(self) -> str:
        text = self.skipped or ", ".join(f"{name} {value}" for name, value in self.cells.items() if value != "")
        return "\n    ".join([f"  {text}", *[*self.log.messages, *self.lost][:10]])

    def plot(self) -> Figure:
        """Requests per second by outcome against time; the fault is shaded."""
        frame = pandas.DataFrame(self.log.records)
        first = frame["begin"].min()
        counts = frame.groupby([(frame["end"] - first).astype(int), "outcome"]).size().unstack(fill_value=0)
        figure = Figure(figsize=(9, 2.4))
        axes = figure.subplots()
        counts.reindex(range(counts.index.max() + 1), fill_value=0).plot(ax=axes, drawstyle="steps-post")
        axes.axvspan(self.began - first, max(self.returned, self.began + 0.1) - first, color="black", alpha=0.1)
        axes.set(xlabel="seconds", ylabel="requests/s")
        return figure


def main(arguments: Sequence[str]) -> int:
    """Inject the faults.

    Returns 1 if a request was dropped, wrong or lost, or if the service did not recover in time.
    """
    options = _parser().parse_args(arguments)
    prepare_process()
    seconds = options.seconds or (QUICK_SECONDS if options.quick else FREEZE_SECONDS)
    known = CLUSTER_FAULTS if options.cluster else FAULTS
    chosen = [fault for fault in known if not options.only or fault.name in options.only]
    directory = env.read()["CDB_DATA_DIR"] / ("chaos-cluster" if options.cluster else "chaos")
    directory.mkdir(parents=True, exist_ok=True)
    played: list[Played] = []
    try:
        data = Path(tempfile.mkdtemp(prefix="service-", dir=directory))
        data.chmod(0o711)
        with cluster.running(data) if options.cluster else _service(data) as place:
            play_all(chosen, place, seconds, played)
    except ServiceError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        short = f"Too short for a verdict: the faults lasted {seconds:g} s instead of {FREEZE_SECONDS:g} s."
        write(directory, played, short if seconds < FREEZE_SECONDS else "")
    return 0 if all(fault_played.is_good for fault_played in played) else 1


def write(directory: Path, played: Sequence[Played], note: str = "") -> None:
    """Print and write the report, with a note at its beginning, if anything was played."""
    if not played:
        return
    table = pandas.DataFrame([fault_played.cells for fault_played in played])
    text = (
        f"Wrong answers {table[WRONG].sum()}, stale answers {table[STALE].sum()}, "
        f"acknowledged writes lost {table['lost'].sum()}"
    )
    texts = [
        *filter(None, [note]),
        EXPLANATION,
        *(
            f"{fault_played.fault.name}: {fault_played.fault.what}, until {fault_played.fault.since}"
            for fault_played in played
        ),
    ]
    path = report.write(
        directory,
        "Faults under load",
        table,
        verdict=text,
        is_good=all(fault_played.is_good for fault_played in played),
        texts=texts,
        plots={fault_played.fault.name: fault_played.plot() for fault_played in played if fault_played.log.records},
    )
    print(f"\n{table.to_string(index=False)}\n{note}\n{text}.\n{path}")


@contextlib.contextmanager
def _service(data: Path) -> Iterator[Place]:
    """One host with `make serve`."""
    try:
        with running(Settings(data, {}), command="serve") as service:
            yield Place(service, service.settings, [service.host], lambda: None)
    finally:
        # Normally the service has stopped its database.
        kill(usage.processes_in(data / "postgres" / "data"))


def play_all(chosen: list[Fault], place: Place, seconds: float, played: list[Played], together: int = 0) -> None:
    """Inject faults into one service, and append the results to `played`.

    If readers read `together`, as many as this number read the same lookup at the same time, and writers do not pause.
    """
    frozen = prepare(place)
    for number, fault in enumerate(chosen):
        print(f"{fault.name}: {fault.what}", flush=True)
        place.settle()
        played.append(play(fault, place, frozen, number, seconds, together))
        print(played[-1], flush=True)


def prepare(place: Place) -> FrozenTag:
    """Create the frozen tag and two clones of it, so that there are several tags."""
    tags = ("--global-tag", FROZEN, "--clones", "2")
    manage(place.commands, "seed_scenario", SCENARIO, "--layout", "random", *tags)
    _request_until_ok(place.service, "PUT", f"gt_change_status/{FROZEN}/frozen")
    return FrozenTag(FROZEN, SCENARIO)


def play(fault: Fault, place: Place, frozen: FrozenTag, number: int, seconds: float, together: int) -> Played:
    """Inject and remove the fault while clients send requests, and check all their responses and the stored rows."""
    service = place.service
    scene, log = Scene(place.hosts, frozen, _written_tag(service, f"written{number:03d}"), None), Log()
    writers = [(clients.write, writer, 0.0 if together else WRITE_PAUSE_SECONDS) for writer in range(WRITERS)]
    # Several, because each waits for what fails.
    freezers = [(clients.change, number, NESTED_PAUSE_SECONDS) for number in range(FREEZERS)]
    processes = ClientProcesses(
        scene,
        [
            *([(clients.read, reader, READ_PAUSE_SECONDS) for reader in range(READERS)] for _ in range(2)),
            [*writers, *freezers, (clients.read_nested, 0, NESTED_PAUSE_SECONDS)],
            *([[(clients.read_together, reader, 0.0) for reader in range(together)]] if together else []),
        ],
    )
    time.sleep(BEFORE_SECONDS)
    began, failure = time.monotonic(), []
    try:
        returned = fault.cause(Stage(service, seconds, scene, log)) or time.monotonic()
    except SkippedError as error:
        processes.finish()
        return Played(fault, log, skipped=str(error))
    except ServiceError as error:
        returned, failure = time.monotonic(), [f"not recovered: {error}"]
    time.sleep(AFTER_SECONDS + fault.recovery_seconds)
    log.join(processes.finish())
    place.settle()
    document, tags = (
        _request_until_ok(service, "GET", path).json for path in (f"globalTag/{scene.written.name}", "globalTags")
    )
    lost = scene.written.lost(document, {tag["name"]: tag["status"] for tag in tags})
    return Played(fault, log, began, returned, failure + lost)


def _written_tag(service: Service, name: str) -> WrittenTag:
    written = WrittenTag.create(name, WRITERS, lambda values: PROCESSES.Array("q", values, lock=False))
    _request_until_ok(service, "POST", "gt", {"name": name, "status": "unlocked"})
    for writer in range(WRITERS):
        _request_until_ok(service, "POST", "pt", {"name": written.payload_type(writer)})
    return written


def _request_until_ok(service: Service, method: str, path: str, body: object = None) -> Response:
    """Retry a request until it succeeds, since the service may still be recovering.

    400 is "already exists", and counts as success of an earlier try. Raises `ServiceError` after `SETTLE_SECONDS`.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            return Client(service.host, timeout=SETTLE_SECONDS).call(method, path, body, also=(400,))
        except ServiceError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests.chaos", description=__doc__, epilog=EXPLANATION)
    parser.add_argument(
        "--cluster", action="store_true", help="inject faults into a cluster, as make cluster starts it"
    )
    names = sorted({fault.name for fault in [*FAULTS, *CLUSTER_FAULTS]})
    text = "inject this fault only; may be repeated"
    parser.add_argument("--only", action="append", choices=names, help=text)
    text = f"duration of faults that do not end by themselves (default: {FREEZE_SECONDS:.0f}s)"
    parser.add_argument("--seconds", **IN_SECONDS, help=text)
    parser.add_argument("--quick", action="store_true", help=f"the same as --seconds {QUICK_SECONDS:.0f}s")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
