"""Clients in separate processes, which check every response.

When the clients are stopped, each process sends its `Log` to the main process.
"""

import contextlib
import multiprocessing
import random
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, product
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

from loadtests.chaos.log import Log
from loadtests.chaos.oracle import ALL, STALE, FrozenTag, Seen, WrittenTag
from loadtests.client import Addresses, Client, Response, lookup_path
from loadtests.content.expected import insert_body, row_of
from loadtests.service import PREFIX, ServiceError

# Processes are spawned, because forking a process with threads is not safe.
PROCESSES = multiprocessing.get_context("spawn")
# Longer than all timeouts of the service.
TIMEOUT_SECONDS = 90
# With several addresses, a client waits this long before it turns to the next one.
TURN_SECONDS = 15
RETRY_SECONDS = (0.1, 0.5)
# Clients that read together turn to the next address after this time.
TOGETHER_SECONDS = 0.2
# The time of a lookup that finds the newest rows.
NEWEST = 2**31
# Of each kind: more than the service has threads.
SLOW_CONNECTIONS = 40


@dataclass(frozen=True)
class Scene:
    """The environment of the clients: addresses of the service, tags, and the event `over` that stops them."""

    hosts: Sequence[str]
    frozen: FrozenTag
    written: WrittenTag
    over: Any

    def client(self, number: int = 0, *, keep_alive: bool = False, stores: bool = False) -> Addresses:
        """An HTTP client of the service; those with different numbers begin with different addresses."""
        timeout = TIMEOUT_SECONDS if len(self.hosts) == 1 else TURN_SECONDS
        clients = deque(Client(host, keep_alive=keep_alive, timeout=timeout) for host in self.hosts)
        clients.rotate(number)
        return Addresses(clients, stores=stores)

    def connect(self, timeout: float = 10) -> socket.socket:
        """A TCP connection to the service."""
        address = urlsplit(self.hosts[0])
        return socket.create_connection((address.hostname, address.port), timeout=timeout)


# A client: it sends a request before each `yield`.
Loop = Callable[[Scene, Log, int], Iterator[None]]


def run(loop: Loop, scene: Scene, log: Log, number: int, pause: float) -> None:
    """Run a client until the clients are stopped; `pause` is the mean pause after each request in seconds."""
    for _ in loop(scene, log, number):
        if scene.over.is_set():
            break
        time.sleep(random.uniform(0, 2 * pause))


def read(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Send lookups and requests for the list of tags.

    Every second reader uses one connection for all requests, and every third one revalidates the responses that it has.
    """
    client = scene.client(number, keep_alive=bool(number % 2), stores=number % 3 == 0)
    while True:
        path, check = _random_request(scene)
        log.add(client, "GET", path, check=check)
        yield


def read_together(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Send the lookup of the newest rows through the address that all these clients use at this time.

    Only requests at the same time can share a response, which may be older than one of them.
    """
    written, each = scene.written, [scene.client(place) for place in range(len(scene.hosts))]
    while True:
        client = each[int(time.monotonic() / TOGETHER_SECONDS) % len(each)]
        log.add(client, "GET", written.path(NEWEST), check=partial(written.check, NEWEST, written.seen()))
        yield


def _random_request(scene: Scene) -> tuple[str, Callable[[Response], str | None]]:
    """The path of a random read request, and the check of its response."""
    seen = scene.written.seen()
    kind = random.random()
    if kind < 0.1:
        return "globalTags", partial(_check_list, scene, seen)
    if kind < 0.5:
        path, moment = scene.frozen.random_lookup()
        return path, partial(scene.frozen.check, moment)
    # The latest rows, or earlier ones, which do not change any more.
    major = random.choice([NEWEST, random.randint(0, max(0, *seen.newest))])
    return scene.written.path(major), partial(scene.written.check, major, seen)


def _check_list(scene: Scene, seen: Seen, response: Response) -> str | None:
    items = {item["name"]: item for item in response.json}
    frozen = items[scene.frozen.name]
    if any(frozen[key] != value for key, value in scene.frozen.items.items()):
        return str(frozen)
    return scene.written.check_count(seen, items[scene.written.name]["payload_iov_count"])


def write(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Insert one row after the other; each is retried with its idempotency key until it is acknowledged."""
    written, client = scene.written, scene.client(number, keep_alive=bool(number % 2))
    while True:
        while written.paused[0] == ALL:
            yield
        row = written.row(number, written.acknowledged[number] + 1)
        written.attempted[number] = row["size"]

        def check(response: Response, url: str = row["payload_url"]) -> str | None:
            [change] = response.json["rows"]
            return None if change["added"]["payload_url"] == url else str(change)

        yield from _acknowledged(log, client, "POST", "payload-iovs/insert", row, check)
        written.acknowledged[number] = row["size"]
        yield


def _acknowledged(log: Log, client: Addresses, *request: Any) -> Iterator[None]:
    """Repeat a write with its idempotency key until it is acknowledged."""
    key = str(uuid.uuid4())
    while not log.add(client, *request, **{"Idempotency-Key": key}):
        time.sleep(random.uniform(*RETRY_SECONDS))
        yield


def change(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Create and delete a tag, and create and freeze another one; read it through each address after each write."""
    client, each, written = (
        scene.client(number),
        [Client(host, timeout=TURN_SECONDS) for host in scene.hosts],
        scene.written,
    )
    for place in count():
        while written.paused[0]:
            yield
        deleted, frozen = f"{written.name}-{number}", written.frozen_tag(number, place)
        first, last = (insert_body(tag, written.payload_type(number), place, (0, 0)) for tag in (deleted, frozen))
        for tag, request, status, rows in (
            (deleted, ("POST", "gt", {"name": deleted, "status": "unlocked"}), "unlocked", []),
            (deleted, ("POST", "payload-iovs/insert", first), "unlocked", [row_of(first)]),
            (deleted, ("DELETE", f"deleteGlobalTag/{deleted}"), None, None),
            (frozen, ("POST", "gt", {"name": frozen, "status": "unlocked"}), "unlocked", []),
            (frozen, ("POST", "payload-iovs/insert", last), "unlocked", [row_of(last)]),
            (frozen, ("PUT", f"gt_change_status/{frozen}/frozen"), "frozen", [row_of(last)]),
        ):
            yield from _acknowledged(log, client, *request)
            if status == "frozen":
                written.frozen[number] = place
            for address, (path, expected) in product(
                each, ((lookup_path(tag, (0, 0)), rows), (f"globalTag/{tag}?light", status))
            ):
                log.add(address, "GET", path, check=partial(_check_state, expected), accepted=(200, 404))
            yield


def _check_state(expected: Any, response: Response) -> str | None:
    """Compare a response with the rows of a lookup, the status of a tag, or None for a tag that does not exist."""
    found = response.json if response.status == 200 else None
    found = found["status"] if isinstance(found, dict) else found
    return None if found == expected else f"{STALE}: {found} instead of {expected}"


def read_nested(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Read the whole frozen tag again and again."""
    client = scene.client()

    def check(response: Response) -> str | None:
        count = sum(len(item["payload_iov"]) for item in response.json["payload_lists"])
        return None if count == scene.frozen.items["payload_iov_count"] else f"{count} rows"

    while True:
        log.add(client, "GET", f"globalTag/{scene.frozen.name}", check=check)
        yield


def leave(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Close connections before the response, or before the end of the request. These requests are not counted."""
    whole = f"GET {PREFIX}globalTag/{scene.frozen.name} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    cut = f"POST {PREFIX}pt HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{{".encode()
    while True:
        with contextlib.suppress(OSError), scene.connect() as connection:
            connection.sendall(random.choice([whole, cut, whole[:20]]))
            if random.random() < 0.5:
                connection.settimeout(0.02)
                connection.recv(100)
        yield


def be_slow(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Send request heads and bodies byte by byte, and do not read large responses. These requests are not counted."""
    whole = f"GET {PREFIX}gt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    body = f"POST {PREFIX}pt HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9000000\r\n\r\n{{".encode()
    beginnings = [beginning for beginning in (body, whole[:-2], whole, b"") for _ in range(SLOW_CONNECTIONS)]
    connections: list[socket.socket | None] = [None] * len(beginnings)
    while True:
        for place, beginning in enumerate(beginnings):
            connection = connections[place]
            # Connections that the service has closed are opened again. The last half sends nothing more.
            if connection is None or (place < 2 * SLOW_CONNECTIONS and not _send_byte(connection)):
                with contextlib.suppress(OSError):
                    connections[place] = scene.connect()
                    connections[place].sendall(beginning)
        scene.over.wait(1)
        yield


def _send_byte(connection: socket.socket) -> bool:
    """Send another byte; returns whether the service has neither responded nor closed the connection."""
    try:
        connection.send(b"x")
        connection.recv(1, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        pass
    connection.close()
    return False


def _work(loops: Sequence[tuple[Loop, int, float]], scene: Scene, home: Connection) -> None:
    """The main function of a client process: run each loop in a thread, and send the results to the main process."""
    results, logs = Log(), [Log() for _ in loops]
    with ThreadPoolExecutor(len(loops)) as pool:
        done = [pool.submit(run, loop, scene, log, *rest) for (loop, *rest), log in zip(loops, logs, strict=True)]
    for log, future in zip(logs, done, strict=True):
        future.result()
        results.join(log)
    home.send(results)


class ClientProcesses:
    """Running client processes.

    Each runs loops, given with a number and the mean pause after each request in seconds.
    """

    def __init__(self, scene: Scene, processes: Sequence[Sequence[tuple[Loop, int, float]]]) -> None:
        self._scene = replace(scene, over=PROCESSES.Event())
        self._started = []
        for loops in processes:
            home, theirs = PROCESSES.Pipe(duplex=False)
            process = PROCESSES.Process(target=_work, args=(loops, self._scene, theirs), daemon=True)
            process.start()
            # With its last copy in the child, the end of that process is noticed.
            theirs.close()
            self._started.append((process, home))

    def finish(self) -> Log:
        """Stop all clients after their current requests, and return their results.

        Raises `ServiceError` if a process ended without sending its results.
        """
        self._scene.over.set()
        results = Log()
        for process, home in self._started:
            try:
                results.join(home.recv())
            except EOFError as error:
                raise ServiceError("a client process ended unexpectedly") from error
            process.join()
        return results
