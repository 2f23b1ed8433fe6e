"""Injecting a fault: a tag for it, clients before, during and after it, and their results."""

import time
from collections import Counter
from dataclasses import dataclass

from loadtests import metrics
from loadtests.chaos.clients import (
    PROCESSES,
    ClientProcesses,
    Log,
    Record,
    Scene,
    read_kept_connection,
    read_nested,
    read_new_connections,
    write,
)
from loadtests.chaos.oracle import FrozenTag, WrittenTag
from loadtests.chaos.service import Serving
from loadtests.chaos.stage import Fault, SkippedError, Stage
from loadtests.chaos.verdict import Row, judge
from loadtests.chaos.wire import Client, DroppedError, Reply
from loadtests.standby import Standby

SCENARIO = "tiny-moderate"
FROZEN = "frozen"
READERS, WRITERS = 8, 4
# Together some 250 requests per second, which leaves CPU time for the faults on a machine with two cores.
READ_PAUSE_SECONDS, WRITE_PAUSE_SECONDS, NESTED_PAUSE_SECONDS = 0.06, 0.1, 0.5
BEFORE_SECONDS, AFTER_SECONDS = 2.0, 5.0
SETTLE_SECONDS = 60


@dataclass(frozen=True)
class Played:
    """The results of a fault.

    `row` is its row of the table, `records` are the requests. `began` and `returned` are when the fault began
    and when the failed component was back, by `time.monotonic`. `messages` describe faulty responses,
    `replica_reads` are the reads from replicas by outcome.
    """

    row: Row
    records: list[Record]
    began: float
    returned: float
    messages: list[str]
    replica_reads: Counter[str]


def prepare(serving: Serving) -> FrozenTag:
    """Create the frozen tag and two clones of it, so that there are several tags."""
    if serving.manage("seed_scenario", SCENARIO, "--global-tag", FROZEN, "--clones", "2").wait(120):
        raise RuntimeError("seed_scenario failed")
    client = Client(serving.port, keep_alive=False)
    _request_until_ok(client, "PUT", f"gt_change_status/{FROZEN}/frozen")
    return FrozenTag(_request_until_ok(client, "GET", f"globalTag/{FROZEN}").json)


def play(
    fault: Fault, serving: Serving, frozen: FrozenTag, number: int, seconds: float, standby: Standby | None = None
) -> Played:
    """Inject and remove the fault while clients send requests, and check all their responses and the stored rows."""
    row = Row(fault.name, fault.what, fault.since)
    reads_before = _replica_reads(serving)
    scene = Scene(serving.port, frozen, _written_tag(serving, f"written{number:03d}"), None)
    processes = ClientProcesses(
        scene,
        [
            [(read_new_connections, reader, READ_PAUSE_SECONDS) for reader in range(READERS)],
            [(read_kept_connection, reader, READ_PAUSE_SECONDS) for reader in range(READERS)],
            [
                *((write, writer, WRITE_PAUSE_SECONDS) for writer in range(WRITERS)),
                (read_nested, 0, NESTED_PAUSE_SECONDS),
            ],
        ],
    )
    time.sleep(BEFORE_SECONDS)
    log = Log()
    began = returned = time.monotonic()
    try:
        returned = fault.cause(Stage(serving, scene, seconds, log, standby))
        time.sleep(AFTER_SECONDS)
    except SkippedError as error:
        row = Row(fault.name, fault.what, fault.since, skipped=str(error))
    log.join(processes.finish())
    client = Client(serving.port, keep_alive=False)
    document = _request_until_ok(client, "GET", f"globalTag/{scene.written.name}").json
    lost = scene.written.lost(document)
    if not row.skipped:
        row = judge(row, log, returned=returned, lost=len(lost))
    reads = _replica_reads(serving) - reads_before
    return Played(row, log.records, began, returned, [*log.messages, *lost], reads)


def _replica_reads(serving: Serving) -> Counter[str]:
    """The reads from replicas so far, by outcome as in /metrics: served, behind, failed."""
    samples = metrics.read(f"http://127.0.0.1:{serving.port}", SETTLE_SECONDS)
    reads = metrics.by_label(samples, "cdb_replica_reads_total", "outcome")
    return Counter({outcome: int(count) for outcome, count in reads.items()})


def _written_tag(serving: Serving, name: str) -> WrittenTag:
    written = WrittenTag(
        name,
        PROCESSES.Array("q", [-1] * WRITERS, lock=False),
        PROCESSES.Array("q", [-1] * WRITERS, lock=False),
    )
    client = Client(serving.port, keep_alive=False)
    _request_until_ok(client, "POST", "gt", {"name": name, "status": "unlocked"})
    for writer in range(WRITERS):
        _request_until_ok(client, "POST", "pt", {"name": written.payload_type(writer)})
    return written


def _request_until_ok(client: Client, method: str, path: str, body: object = None) -> Reply:
    """Retry a request until it succeeds, since the service may still be recovering.

    "Already exists" counts as success of an earlier try. Raises `RuntimeError` after `SETTLE_SECONDS`.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            reply = client.request(method, path, body)
            problem = reply.body[:200]
            if reply.status == 200 or "already exists" in str(reply.json):
                return reply
        except DroppedError as error:
            problem = str(error)
        if time.monotonic() > deadline:
            raise RuntimeError(f"{method} {path}: {problem!r}")
        time.sleep(0.5)
