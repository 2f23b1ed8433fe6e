"""Playing a fault: tags of its own, clients before, during and after it, and what they found."""

import time
import urllib.request
from collections import Counter
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from loadtests.chaos.clients import (
    PROCESSES,
    Crew,
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
from loadtests.chaos.wire import Asker, DroppedError, Reply
from loadtests.standby import Standby

SCENARIO = "tiny-moderate"
FROZEN = "frozen"
READERS, WRITERS = 8, 4
# Together some 250 requests a second, which leaves two cores time for the faults.
READ_PAUSE_SECONDS, WRITE_PAUSE_SECONDS, NESTED_PAUSE_SECONDS = 0.06, 0.1, 0.5
BEFORE_SECONDS, AFTER_SECONDS = 2.0, 5.0
SETTLE_SECONDS = 60


@dataclass(frozen=True)
class Played:
    """A fault that was played: its row, the requests, when it began and when what failed was back, wordings, and what became of
    reads from replicas."""

    row: Row
    records: list[Record]
    began: float
    returned: float
    wordings: list[str]
    replica_reads: Counter[str]


def prepare(serving: Serving) -> FrozenTag:
    """Make the frozen tag, and some others for company."""
    if serving.manage("seed_scenario", SCENARIO, "--global-tag", FROZEN, "--clones", "2").wait(120):
        raise RuntimeError("the tags were not made")
    asker = Asker(serving.port, keeps=False)
    _insist(asker, "PUT", f"gt_change_status/{FROZEN}/frozen")
    return FrozenTag(_insist(asker, "GET", f"globalTag/{FROZEN}").json)


def play(
    fault: Fault, serving: Serving, frozen: FrozenTag, number: int, seconds: float, standby: Standby | None = None
) -> Played:
    """Put the fault in and take it away while clients ask, and hold everything that they got against what it has to be."""
    row = Row(fault.name, fault.what, fault.since)
    reads_before = _replica_reads(serving)
    scene = Scene(serving.port, frozen, _written_tag(serving, f"written{number:03d}"), None)
    crew = Crew(
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
    log.join(crew.finish())
    document = _insist(Asker(serving.port, keeps=False), "GET", f"globalTag/{scene.written.name}").json
    lost = scene.written.lost(document)
    if not row.skipped:
        row = judge(row, log, returned=returned, lost=len(lost))
    reads = _replica_reads(serving) - reads_before
    return Played(row, log.records, began, returned, [*log.wordings, *lost], reads)


def _replica_reads(serving: Serving) -> Counter[str]:
    """What became of reads from replicas so far, as /metrics tells: served, behind, failed."""
    with urllib.request.urlopen(f"http://127.0.0.1:{serving.port}/metrics", timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = (sample for family in families for sample in family.samples if sample.name == "cdb_replica_reads_total")
    return sum((Counter({sample.labels["outcome"]: int(sample.value)}) for sample in samples), Counter())


def _written_tag(serving: Serving, name: str) -> WrittenTag:
    written = WrittenTag(
        name,
        PROCESSES.Array("q", [-1] * WRITERS, lock=False),
        PROCESSES.Array("q", [-1] * WRITERS, lock=False),
    )
    asker = Asker(serving.port, keeps=False)
    _insist(asker, "POST", "gt", {"name": name, "status": "unlocked"})
    for writer in range(WRITERS):
        _insist(asker, "POST", "pt", {"name": written.payload_type(writer)})
    return written


def _insist(asker: Asker, method: str, path: str, body: object = None) -> Reply:
    """Ask until it is answered, for a while; the service may have just been through something."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            reply = asker.ask(method, path, body)
            said = reply.body[:200]
            if reply.status == 200 or "already exists" in str(reply.json):
                return reply
        except DroppedError as error:
            said = str(error)
        if time.monotonic() > deadline:
            raise RuntimeError(f"{method} {path}: {said!r}")
        time.sleep(0.5)
