"""Inject faults into the service under load, and report their effects on clients (python -m loadtests.chaos)."""

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cdb import env
from cdb_rest.management.quantities import IN_SECONDS
from loadtests import usage
from loadtests.chaos import clients, faults, hostile_faults  # noqa: F401 -- they define the faults
from loadtests.chaos.clients import PROCESSES, ClientProcesses, Scene
from loadtests.chaos.log import WRONG, Log
from loadtests.chaos.oracle import FrozenTag, WrittenTag
from loadtests.chaos.report import FREEZE_SECONDS, Played, table_of, too_short, write
from loadtests.chaos.stage import FAULTS, Fault, SkippedError, Stage
from loadtests.client import Client, Response
from loadtests.reporting.report import markdown_table, notes
from loadtests.service import INTERRUPTED, Service, ServiceError, Settings, kill, manage, prepare_process, running
from loadtests.standby import Standby

# An empty value is the default of the service; the harness has others.
AS_IN_PRODUCTION = {"CDB_STRATEGIES": "", "CDB_LOOKUP_TIMEOUT_SECONDS": ""}
QUICK_SECONDS = 8.0
SCENARIO = "tiny-moderate"
FROZEN = "frozen"
READERS, WRITERS = 8, 4
# Together some 250 requests per second, which leaves CPU time for the faults on a machine with two cores.
READ_PAUSE_SECONDS, WRITE_PAUSE_SECONDS, NESTED_PAUSE_SECONDS = 0.06, 0.1, 0.5
BEFORE_SECONDS, AFTER_SECONDS = 2.0, 5.0
SETTLE_SECONDS = 60


def main(arguments: Sequence[str]) -> int:
    """Inject the faults.

    Returns 1 if a request was dropped, wrong or lost, or if the service did not recover in time.
    """
    options = _parser().parse_args(arguments)
    prepare_process()
    seconds = options.seconds or (QUICK_SECONDS if options.quick else FREEZE_SECONDS)
    chosen = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    directory = env.read()["CDB_DATA_DIR"] / "chaos"
    directory.mkdir(parents=True, exist_ok=True)
    played: list[Played] = []
    try:
        for with_replica in (False, True):
            group = [fault for fault in chosen if fault.with_replica == with_replica]
            if group:
                data = Path(tempfile.mkdtemp(prefix="service-", dir=directory))
                _play_all(group, data, seconds, played)
    except ServiceError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        write(directory, played, seconds)
    wrong, lost = (sum(one.cells[name] for one in played) for name in (WRONG, "lost"))
    print(f"\n{markdown_table(table_of(played))}\n{' '.join(too_short(seconds))}")
    print(f"Wrong answers {wrong}, acknowledged writes lost {lost}. Written to {directory}")
    return 0 if all(one.is_good for one in played) else 1


def _play_all(group: list[Fault], data: Path, seconds: float, played: list[Played]) -> None:
    """Inject faults into one service, with a replica if the faults need it, and append the results to `played`."""
    data.chmod(0o711)
    standby = Standby(data, data / "standby") if group[0].with_replica else None
    settings = AS_IN_PRODUCTION | ({"DATABASE_REPLICA_URLS": standby.url} if standby else {})
    try:
        with (
            running(Settings(data, settings), workers=None, command="serve") as service,
            standby.running() if standby else contextlib.nullcontext(),
        ):
            frozen = prepare(service)
            if standby:
                standby.wait_until_caught_up()
            for number, fault in enumerate(group):
                print(f"{fault.name}: {fault.what}", flush=True)
                played.append(play(fault, service, frozen, number, seconds, standby))
                print(played[-1], flush=True)
    finally:
        # Normally the service has stopped its database.
        kill(usage.processes_in(data / "postgres" / "data"))


def prepare(service: Service) -> FrozenTag:
    """Create the frozen tag and two clones of it, so that there are several tags."""
    tags = ("--global-tag", FROZEN, "--clones", "2")
    manage(service.settings, "seed_scenario", SCENARIO, "--layout", "random", *tags)
    _request_until_ok(service, "PUT", f"gt_change_status/{FROZEN}/frozen")
    return FrozenTag(FROZEN, SCENARIO)


def play(
    fault: Fault, service: Service, frozen: FrozenTag, number: int, seconds: float, standby: Standby | None = None
) -> Played:
    """Inject and remove the fault while clients send requests, and check all their responses and the stored rows."""
    scene, log = Scene(service.host, frozen, _written_tag(service, f"written{number:03d}"), None), Log()
    writers = [(clients.write, writer, WRITE_PAUSE_SECONDS) for writer in range(WRITERS)]
    processes = ClientProcesses(
        scene,
        [
            *([(clients.read, reader, READ_PAUSE_SECONDS) for reader in range(READERS)] for _ in range(2)),
            [*writers, (clients.read_nested, 0, NESTED_PAUSE_SECONDS)],
        ],
    )
    time.sleep(BEFORE_SECONDS)
    began = time.monotonic()
    try:
        returned = fault.cause(Stage(service, scene, seconds, log, standby)) or time.monotonic()
    except SkippedError as error:
        processes.finish()
        return Played(fault, log, skipped=str(error))
    time.sleep(AFTER_SECONDS)
    log.join(processes.finish())
    lost = scene.written.lost(_request_until_ok(service, "GET", f"globalTag/{scene.written.name}").json)
    return Played(fault, log, began, returned, lost)


def _written_tag(service: Service, name: str) -> WrittenTag:
    attempted, acknowledged = (PROCESSES.Array("q", [-1] * WRITERS, lock=False) for _ in range(2))
    written = WrittenTag(name, attempted, acknowledged)
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
    parser = argparse.ArgumentParser(prog="python -m loadtests.chaos", description=__doc__, epilog=notes("chaos")[0])
    names, text = [fault.name for fault in FAULTS], "inject this fault only; may be repeated"
    parser.add_argument("--only", action="append", choices=names, help=text)
    text = f"duration of faults that do not end by themselves (default: {FREEZE_SECONDS:.0f}s)"
    parser.add_argument("--seconds", **IN_SECONDS, help=text)
    parser.add_argument("--quick", action="store_true", help=f"the same as --seconds {QUICK_SECONDS:.0f}s")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
