"""Clients in separate processes, which check every response.

When the clients are stopped, each process sends its `Log` to the main process.
"""

import multiprocessing
import random
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

from loadtests.chaos.log import Log
from loadtests.chaos.oracle import FrozenTag, WrittenTag
from loadtests.client import Client, Response
from loadtests.service import PREFIX, ServiceError

# Processes are spawned, because forking a process with threads is not safe.
PROCESSES = multiprocessing.get_context("spawn")
# Longer than all timeouts of the service.
TIMEOUT_SECONDS = 90
RETRY_SECONDS = (0.1, 0.5)


@dataclass(frozen=True)
class Scene:
    """The environment of the clients: address of the service, tags, and the event `over` that stops them."""

    host: str
    frozen: FrozenTag
    written: WrittenTag
    over: Any

    def connect(self, timeout: float = 10) -> socket.socket:
        """A TCP connection to the service."""
        address = urlsplit(self.host)
        return socket.create_connection((address.hostname, address.port), timeout=timeout)


Loop = Callable[[Scene, Log, int, float], None]


def read(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Send lookups and requests for the list of tags; every second reader uses one connection for all."""
    client = Client(scene.host, keep_alive=bool(number % 2), timeout=TIMEOUT_SECONDS)
    while not scene.over.is_set():
        path, check = _random_request(scene)
        log.add(partial(client.request, "GET", path), check)
        time.sleep(random.uniform(0, 2 * pause))
    log.reconnected += client.reconnected


def _random_request(scene: Scene) -> tuple[str, Callable[[Response], str | None]]:
    """The path of a random read request, and the check of its response."""
    oldest = list(scene.written.acknowledged)
    kind = random.random()
    if kind < 0.1:
        return "globalTags", partial(_check_list, scene, oldest)
    if kind < 0.5:
        path, moment = scene.frozen.random_lookup()
        return path, partial(scene.frozen.check, path, moment)
    # The latest rows, or earlier ones, which do not change any more.
    major = random.choice([2**31, random.randint(0, max(0, *oldest))])
    return scene.written.path(major), partial(scene.written.check, major, oldest)


def _check_list(scene: Scene, oldest: Sequence[int], response: Response) -> str | None:
    newest = sum(number + 1 for number in scene.written.attempted)
    items = {item["name"]: item for item in response.json}
    frozen = items[scene.frozen.name]
    if any(frozen[key] != value for key, value in scene.frozen.items.items()):
        return f"globalTags: {frozen}"
    count = items[scene.written.name]["payload_iov_count"]
    least = sum(number + 1 for number in oldest)
    return None if least <= count <= newest else f"globalTags: {count} rows, not from {least} to {newest}"


def write(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Insert one row after the other; each is retried with its idempotency key until it is acknowledged."""
    written, client = scene.written, Client(scene.host, keep_alive=bool(number % 2), timeout=TIMEOUT_SECONDS)
    while not scene.over.is_set():
        row = written.row(number, written.acknowledged[number] + 1)
        if _insert(scene, log, client, number, row):
            written.acknowledged[number] = row["size"]
        time.sleep(random.uniform(0, 2 * pause))
    log.reconnected += client.reconnected


def _insert(scene: Scene, log: Log, client: Client, number: int, row: dict[str, Any]) -> bool:
    """Insert a row; returns whether it was acknowledged before the clients were stopped."""
    key = str(uuid.uuid4())

    def check(response: Response) -> str | None:
        [change] = response.json["rows"]
        return None if change["added"]["payload_url"] == row["payload_url"] else f"insert: {change}"

    scene.written.attempted[number] = row["size"]
    send = partial(client.request, "POST", "payload-iovs/insert", row, **{"Idempotency-Key": key})
    while not log.add(send, check):
        if scene.over.is_set():
            return False
        time.sleep(random.uniform(*RETRY_SECONDS))
    return True


def read_nested(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Read the whole frozen tag again and again."""
    client = Client(scene.host, keep_alive=False, timeout=TIMEOUT_SECONDS)
    path = f"globalTag/{scene.frozen.name}"

    def check(response: Response) -> str | None:
        count = sum(len(one["payload_iov"]) for one in response.json["payload_lists"])
        return None if count == scene.frozen.items["payload_iov_count"] else f"{path}: {count} rows"

    while not scene.over.is_set():
        log.add(partial(client.request, "GET", path), check)
        time.sleep(random.uniform(0, 2 * pause))


def leave(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Close connections before the response, or before the end of the request. These requests are not counted."""
    whole = f"GET {PREFIX}globalTag/{scene.frozen.name} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    cut = f"POST {PREFIX}pt HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{{".encode()
    while not scene.over.is_set():
        try:
            with scene.connect() as connection:
                connection.sendall(random.choice([whole, cut, whole[:20]]))
                if random.random() < 0.5:
                    connection.settimeout(0.02)
                    connection.recv(100)
        except OSError:
            pass
        time.sleep(random.uniform(0, 2 * pause))


def _work(loops: Sequence[tuple[Loop, int, float]], scene: Scene, home: Connection) -> None:
    """The main function of a client process: run each loop in a thread, and send the results to the main process."""
    results, logs = Log(), [Log() for _ in loops]
    with ThreadPoolExecutor(len(loops)) as pool:
        done = [pool.submit(loop, scene, log, *rest) for (loop, *rest), log in zip(loops, logs, strict=True)]
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
        """Stop all clients after their current requests, and return their results.

        Raises `ServiceError` if a process ended without sending its results.
        """
        self._scene.over.set()
        results = Log()
        for home, process in zip(self._homes, self._processes, strict=True):
            try:
                results.join(home.recv())
            except EOFError as error:
                raise ServiceError("a client process ended unexpectedly") from error
            process.join()
        return results
