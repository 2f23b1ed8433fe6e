"""Injecting a fault: a tag for it, clients before, during and after it, and their results."""

import time
from collections import Counter

from loadtests import metrics
from loadtests.chaos import clients
from loadtests.chaos.clients import PROCESSES, ClientProcesses, Scene
from loadtests.chaos.log import Log
from loadtests.chaos.oracle import FrozenTag, WrittenTag
from loadtests.chaos.report import Played
from loadtests.chaos.stage import Fault, SkippedError, Stage
from loadtests.client import Client, DroppedError, Response
from loadtests.service import Service, manage
from loadtests.standby import Standby

SCENARIO = "tiny-moderate"
FROZEN = "frozen"
READERS, WRITERS = 8, 4
# Together some 250 requests per second, which leaves CPU time for the faults on a machine with two cores.
READ_PAUSE_SECONDS, WRITE_PAUSE_SECONDS, NESTED_PAUSE_SECONDS = 0.06, 0.1, 0.5
BEFORE_SECONDS, AFTER_SECONDS = 2.0, 5.0
SETTLE_SECONDS = 60


def prepare(service: Service) -> FrozenTag:
    """Create the frozen tag and two clones of it, so that there are several tags."""
    manage(service.settings, "seed_scenario", SCENARIO, "--global-tag", FROZEN, "--clones", "2")
    _request_until_ok(service, "PUT", f"gt_change_status/{FROZEN}/frozen")
    return FrozenTag(_request_until_ok(service, "GET", f"globalTag/{FROZEN}").json)


def play(
    fault: Fault, service: Service, frozen: FrozenTag, number: int, seconds: float, standby: Standby | None = None
) -> Played:
    """Inject and remove the fault while clients send requests, and check all their responses and the stored rows."""
    skipped, reads_before = "", _replica_reads(service)
    scene, log = Scene(service.host, frozen, _written_tag(service, f"written{number:03d}"), None), Log()
    writers = [(clients.write, writer, WRITE_PAUSE_SECONDS) for writer in range(WRITERS)]
    processes = ClientProcesses(
        scene,
        [
            [(clients.read_new_connections, reader, READ_PAUSE_SECONDS) for reader in range(READERS)],
            [(clients.read_kept_connection, reader, READ_PAUSE_SECONDS) for reader in range(READERS)],
            [*writers, (clients.read_nested, 0, NESTED_PAUSE_SECONDS)],
        ],
    )
    time.sleep(BEFORE_SECONDS)
    began = returned = time.monotonic()
    try:
        returned = fault.cause(Stage(service, scene, seconds, log, standby)) or time.monotonic()
        time.sleep(AFTER_SECONDS)
    except SkippedError as error:
        skipped = str(error)
    log.join(processes.finish())
    lost = scene.written.lost(_request_until_ok(service, "GET", f"globalTag/{scene.written.name}").json)
    reads = _replica_reads(service) - reads_before
    if skipped:
        return Played(fault, Log(), skipped=skipped)
    return Played(fault, log, began, returned, lost, reads)


def _replica_reads(service: Service) -> Counter[str]:
    """The reads from replicas so far, by outcome as in /metrics: served, behind, failed."""
    reads = metrics.by_label(metrics.read(service.host, SETTLE_SECONDS), "cdb_replica_reads_total", "outcome")
    return Counter({outcome: int(count) for outcome, count in reads.items()})


def _written_tag(service: Service, name: str) -> WrittenTag:
    attempted, acknowledged = (PROCESSES.Array("q", [-1] * WRITERS, lock=False) for _ in range(2))
    written = WrittenTag(name, attempted, acknowledged)
    _request_until_ok(service, "POST", "gt", {"name": name, "status": "unlocked"})
    for writer in range(WRITERS):
        _request_until_ok(service, "POST", "pt", {"name": written.payload_type(writer)})
    return written


def _request_until_ok(service: Service, method: str, path: str, body: object = None) -> Response:
    """Retry a request until it succeeds, since the service may still be recovering.

    "Already exists" counts as success of an earlier try. Raises `RuntimeError` after `SETTLE_SECONDS`.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            response = Client(service.host, keep_alive=False, timeout=SETTLE_SECONDS).request(method, path, body)
            problem = response.body[:200].decode(errors="replace")
            if response.status == 200 or "already exists" in problem:
                return response
        except DroppedError as error:
            problem = str(error)
        if time.monotonic() > deadline:
            raise RuntimeError(f"{method} {path}: {problem}")
        time.sleep(0.5)
