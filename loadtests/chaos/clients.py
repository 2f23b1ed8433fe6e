"""Clients in processes of their own, each of which holds every answer against what it has to be.

The loops end when they are told to and send home what they met: a `Record` for each request, and the wording of what was
dropped or wrong.
"""

import multiprocessing
import random
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from loadtests.chaos.oracle import FrozenTag, WrittenTag
from loadtests.chaos.wire import Asker, DroppedError, Reply
from loadtests.service import ServiceError

ANSWERED, REFUSED, DROPPED, WRONG = "answered", "504", "dropped", "wrong"
# Processes are started anew, because forks of one with threads are not safe.
PROCESSES = multiprocessing.get_context("spawn")
WORDINGS = 20
RETRY_SECONDS = (0.1, 0.5)


class Record(NamedTuple):
    """One request: when it began and ended, in seconds of the system's monotonic clock, and what became of it."""

    begin: float
    end: float
    outcome: str


@dataclass
class Log:
    """What the clients of a process met. `counted` are requests that no record was kept of, by outcome, and `slowest` the longest
    time of one of those, in seconds."""

    records: list[Record] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    wordings: list[str] = field(default_factory=list)
    reconnected: int = 0

    def add(self, ask: Callable[[], Reply], check: Callable[[Reply], str | None]) -> bool:
        """Ask once and keep what came of it. Returns whether it was answered, and rightly."""
        begin = time.monotonic()
        fault = None
        try:
            reply = ask()
            outcome = ANSWERED if reply.status == 200 else REFUSED if reply.is_refusal else WRONG
            fault = check(reply) if outcome is ANSWERED else None
            if outcome is WRONG:
                fault = f"status {reply.status}: {reply.body[:200]!r}"
        except DroppedError as error:
            outcome = DROPPED
            self._say(f"dropped: {error}")
        except (KeyError, TypeError, IndexError) as error:
            fault = f"not of the expected form: {error!r}"
        if fault:
            outcome = WRONG
            self._say(f"wrong: {fault}")
        self.records.append(Record(begin, time.monotonic(), outcome))
        return outcome is ANSWERED

    def join(self, other: "Log") -> None:
        """Add what others met."""
        self.records += other.records
        self.counted += other.counted
        self.slowest = max(self.slowest, other.slowest)
        self.wordings += other.wordings
        self.reconnected += other.reconnected

    def _say(self, wording: str) -> None:
        if len(self.wordings) < WORDINGS:
            self.wordings.append(wording)


@dataclass(frozen=True)
class Scene:
    """What the clients work with: the port, the tags, and an event that ends them."""

    port: int
    frozen: FrozenTag
    written: WrittenTag
    over: Any


Loop = Callable[[Scene, Log, int, float], None]


def read_new_connections(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Lookups and lists, each over a connection of its own."""
    _read(scene, log, Asker(scene.port, keeps=False), pause)


def read_kept_connection(scene: Scene, log: Log, number: int, pause: float) -> None:
    """The same over one connection."""
    _read(scene, log, Asker(scene.port, keeps=True), pause)


def _read(scene: Scene, log: Log, asker: Asker, pause: float) -> None:
    while not scene.over.is_set():
        log.add(*_question(scene, asker))
        time.sleep(random.uniform(0, 2 * pause))
    log.reconnected += asker.reconnected


def _question(scene: Scene, asker: Asker) -> tuple[Callable[[], Reply], Callable[[Reply], str | None]]:
    """Something to ask, and the check of its answer."""
    oldest = list(scene.written.acknowledged)
    kind = random.random()
    if kind < 0.1:
        return lambda: asker.ask("GET", "globalTags"), lambda reply: _check_list(scene, oldest, reply)
    if kind < 0.5:
        path, moment = scene.frozen.question()
        return lambda: asker.ask("GET", path), lambda reply: scene.frozen.check(path, moment, reply)
    # The latest rows, or some in between that can't change any more.
    major = random.choice([2**31, random.randint(0, max(0, *oldest))])
    path = scene.written.path(major)
    return lambda: asker.ask("GET", path), lambda reply: scene.written.check(major, oldest, reply)


def _check_list(scene: Scene, oldest: Sequence[int], reply: Reply) -> str | None:
    newest = sum(number + 1 for number in scene.written.attempted)
    items = {item["name"]: item for item in reply.json}
    frozen = items[scene.frozen.name]
    if any(frozen[key] != value for key, value in scene.frozen.items.items()) or frozen["status"] != "frozen":
        return f"globalTags: {frozen}"
    count = items[scene.written.name]["payload_iov_count"]
    least = sum(number + 1 for number in oldest)
    return None if least <= count <= newest else f"globalTags: {count} rows, not from {least} to {newest}"


def write(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Inserts of one row after the other, each sent again with its key until it is acknowledged."""
    written, asker = scene.written, Asker(scene.port, keeps=bool(number % 2))
    while not scene.over.is_set():
        row = written.row(number, written.acknowledged[number] + 1)
        if _insert(scene, log, asker, number, row):
            written.acknowledged[number] = row["size"]
        time.sleep(random.uniform(0, 2 * pause))
    log.reconnected += asker.reconnected


def _insert(scene: Scene, log: Log, asker: Asker, number: int, row: dict[str, Any]) -> bool:
    """Whether the row was acknowledged before all was over."""
    key = str(uuid.uuid4())

    def check(reply: Reply) -> str | None:
        [told] = reply.json["rows"]
        return None if told["added"]["payload_url"] == row["payload_url"] else f"insert: {told}"

    scene.written.attempted[number] = row["size"]
    while not log.add(lambda: asker.ask("POST", "payload-iovs/insert", row, **{"Idempotency-Key": key}), check):
        if scene.over.is_set():
            return False
        time.sleep(random.uniform(*RETRY_SECONDS))
    return True


def read_nested(scene: Scene, log: Log, number: int, pause: float) -> None:
    """The whole frozen tag, over and over."""
    asker = Asker(scene.port, keeps=False)
    path = f"globalTag/{scene.frozen.name}"

    def check(reply: Reply) -> str | None:
        count = sum(len(one["payload_iov"]) for one in reply.json["payload_lists"])
        return None if count == scene.frozen.items["payload_iov_count"] else f"{path}: {count} rows"

    while not scene.over.is_set():
        log.add(lambda: asker.ask("GET", path), check)
        time.sleep(random.uniform(0, 2 * pause))


def leave(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Requests whose client is gone before it has an answer, or before it has said all. None of them is counted."""
    whole = f"GET /api/cdb_rest/globalTag/{scene.frozen.name} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    cut = b"POST /api/cdb_rest/pt HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    while not scene.over.is_set():
        try:
            with socket.create_connection(("127.0.0.1", scene.port), timeout=10) as connection:
                connection.sendall(random.choice([whole, cut, whole[:20]]))
                if random.random() < 0.5:
                    connection.settimeout(0.02)
                    connection.recv(100)
        except OSError:
            pass
        time.sleep(random.uniform(0, 2 * pause))


def _work(loops: Sequence[tuple[Loop, int, float]], scene: Scene, home: Connection) -> None:
    """A process's main function: a thread for each loop."""
    logs = [Log() for _ in loops]
    threads = [
        threading.Thread(target=loop, args=(scene, log, number, pause))
        for (loop, number, pause), log in zip(loops, logs, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    met = Log()
    for log in logs:
        met.join(log)
    home.send(met)


class Crew:
    """Some processes of clients. Each loop is given with its number and the mean pause after each request, in seconds."""

    def __init__(self, scene: Scene, processes: Sequence[Sequence[tuple[Loop, int, float]]]) -> None:
        self._scene = Scene(scene.port, scene.frozen, scene.written, PROCESSES.Event())
        self._processes = []
        self._homes = []
        for loops in processes:
            home, theirs = PROCESSES.Pipe(duplex=False)
            process = PROCESSES.Process(target=_work, args=(loops, self._scene, theirs), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._homes.append(home)

    def finish(self) -> Log:
        """Tell all to end, after the request that each is at, and return what they met.

        Raises `ServiceError` if a process did not get that far.
        """
        self._scene.over.set()
        met = Log()
        for home, process in zip(self._homes, self._processes, strict=True):
            try:
                met.join(home.recv())
            except EOFError as error:
                raise ServiceError("a process of clients ended before it was told to") from error
            process.join()
        return met
