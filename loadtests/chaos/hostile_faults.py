"""Attacks that any client can make: preconditions, pages of other sites, slow networks, HTTP/1.0.

The attackers are processes of their own. What they get is checked, too: an attack that succeeds is a wrong response.
"""

import contextlib
import http.client
import json
import random
import socket
import time
from collections.abc import Callable, Iterator

from loadtests.chaos.clients import ANSWERED, DROPPED, WRONG, Crew, Log, Loop, Record, Scene
from loadtests.chaos.faults import kill_workers
from loadtests.chaos.stage import Fault, Stage

PREFIX = "/api/cdb_rest/"
ATTACKERS = 4
# Of each kind, for each attacker: more than there were once places for writers, and than there are threads.
SLOW_CONNECTIONS = 40
OPEN_WRITES = 30
EVIL = "https://evil.example"
OLD, NEW = "Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
CONDITIONS = [
    {"If-Match": '"x"'}, {"If-Match": "*"}, {"If-Match": ""}, {"If-Unmodified-Since": OLD}, {"If-Unmodified-Since": NEW},
    {"If-None-Match": '"x"'}, {"If-None-Match": "*"}, {"If-Modified-Since": OLD}, {"Range": "bytes=0-3"},
    {"If-Range": '"x"', "Range": "bytes=0-3"}, {"If-Match": '"x"', "If-None-Match": '"x"'},
]  # fmt: skip


def attack_by_conditions(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Conditional reads of what nginx keeps, some 50 a second each, while other writes stay incomplete."""
    name = scene.written.name if number % 2 else scene.frozen.name
    paths = [
        f"payloadiovs/?gtName={name}&majorIOV=1&minorIOV=0",
        f"globalTag/{name}",
        f"gtPayloadLists/{name}",
        "globalTags",
    ]
    with _opened(scene, OPEN_WRITES, lambda _: _write(b"Content-Length: 1000\r\n") + b"{"):
        while not scene.over.is_set():
            condition = random.choice(CONDITIONS)
            # An empty condition is answered by nginx itself.
            expected = (200, 304, 412)
            _ask(scene, log, "GET", random.choice(paths), condition, expected, may_be_html="" in condition.values())
            time.sleep(random.uniform(0, 2 * pause))


def attack_by_pages(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Writes that a browser sends for a page of another site."""
    row = scene.written.row(0, 10**9) | {"until": "open"}
    attacks = [
        ("POST", "payload-iovs/insert", json.dumps(row)),
        ("POST", f"cloneGlobalTag/{scene.frozen.name}/evil", ""),
        ("PUT", f"gt_change_status/{scene.written.name}/frozen", ""),
        ("DELETE", f"deleteGlobalTag/{scene.written.name}", ""),
    ]
    signs = [{"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}]
    while not scene.over.is_set():
        method, path, body = random.choice(attacks)
        _ask(scene, log, method, path, random.choice(signs), (403,), body)
        time.sleep(random.uniform(0, 2 * pause))


def attack_by_slowness(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Heads and bodies that come byte by byte, and clients that take nothing of a large response. None of them is counted."""
    whole = f"GET {PREFIX}gt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    kinds = [_write(b"Content-Length: 9000000\r\n") + b"{", whole[:-2], whole, b""]
    with _opened(scene, len(kinds) * SLOW_CONNECTIONS, lambda place: kinds[place // SLOW_CONNECTIONS]) as connections:
        while not scene.over.wait(1):
            # One that was refused tries again.
            for place, connection in enumerate(connections[: 2 * SLOW_CONNECTIONS]):
                if not _goes_on(connection):
                    connection.close()
                    with contextlib.suppress(OSError):
                        connections[place] = _open(scene, kinds[place // SLOW_CONNECTIONS])


def _goes_on(connection: socket.socket) -> bool:
    """Send another byte; returns whether the service has neither responded nor closed the connection."""
    try:
        connection.send(b"x")
        connection.recv(1, socket.MSG_DONTWAIT)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def attack_by_old_http(scene: Scene, log: Log, number: int, pause: float) -> None:
    """Large responses over HTTP/1.0, which a client could not tell from whole ones when they are cut."""
    while not scene.over.is_set():
        for path in (f"global-tags/{scene.frozen.name}/export", f"globalTag/{scene.frozen.name}"):
            begin, fault = time.monotonic(), None
            head, _, body = _ask_old(scene, path).partition(b"\r\n\r\n")
            if "export" in path and not head.startswith(b"HTTP/1.1 400") and not head.startswith(b"HTTP/1.1 504"):
                fault = f"export over HTTP/1.0: {head[:60]!r}, {len(body)} bytes"
            elif b"\netag" in head.lower():
                fault = f"{path} over HTTP/1.0 has a name for caches"
            _note(log, begin, fault)
        time.sleep(random.uniform(0, 2 * pause))


def _ask_old(scene: Scene, path: str) -> bytes:
    """Whatever came before the connection ended, however it ended."""
    received = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", scene.port), timeout=60) as connection:
        connection.sendall(f"GET {PREFIX}{path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
        while piece := connection.recv(65536):
            received += piece
    return received or b"HTTP/1.1 504"


def _ask(
    scene: Scene,
    log: Log,
    method: str,
    path: str,
    headers: dict[str, str],
    expected: tuple[int, ...],
    body: str = "",
    *,
    may_be_html: bool = False,
) -> None:
    """Ask once over a new connection, and note whether the response is of the expected kind."""
    begin, fault = time.monotonic(), None
    connection = http.client.HTTPConnection("127.0.0.1", scene.port, timeout=60)
    try:
        connection.request(method, PREFIX + path, body or None, headers)
        response = connection.getresponse()
        content = response.read()
        if response.status not in expected:
            fault = f"{method} {path} with {headers}: {response.status} {content[:100]!r}"
        elif content and not may_be_html:
            json.loads(content)
    except (OSError, http.client.HTTPException, ValueError) as error:
        log.records.append(Record(begin, time.monotonic(), DROPPED))
        log.wordings.append(f"dropped: {method} {path} with {headers}: {error!r}")
        return
    finally:
        connection.close()
    _note(log, begin, fault)


def _note(log: Log, begin: float, fault: str | None) -> None:
    log.records.append(Record(begin, time.monotonic(), WRONG if fault else ANSWERED))
    if fault:
        log.wordings.append(f"wrong: {fault}")


@contextlib.contextmanager
def _opened(scene: Scene, number: int, beginning: Callable[[int], bytes]) -> Iterator[list[socket.socket]]:
    connections: list[socket.socket] = []
    try:
        for place in range(number):
            with contextlib.suppress(OSError):
                connections.append(_open(scene, beginning(place)))
        yield connections
    finally:
        for connection in connections:
            connection.close()


def _open(scene: Scene, beginning: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", scene.port), timeout=10)
    connection.sendall(beginning)
    return connection


def _write(headers: bytes) -> bytes:
    """The head of a write."""
    return b"POST /api/cdb_rest/pt HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n%s\r\n" % headers


def _attack(loop: Loop, during: Callable[[Stage], float] | None = None) -> Callable[[Stage], float]:
    """A fault that lets attackers loop for a while, during which another fault may be put in."""

    def cause(stage: Stage) -> float:
        crew = Crew(stage.scene, [[(loop, number, 0.02) for number in range(ATTACKERS)]])
        returned = time.monotonic()
        deadline = returned + stage.seconds
        while during and time.monotonic() < deadline - 2:
            time.sleep(1)
            returned = during(stage)
        time.sleep(max(0.0, deadline - time.monotonic()))
        stage.log.join(crew.finish())
        return returned if during else time.monotonic()

    return cause


HOSTILE_FAULTS = [
    Fault(
        "hostile-conditions",
        f"conditional reads that once crashed nginx, while {ATTACKERS * OPEN_WRITES} writes stay incomplete",
        "the last of them",
        _attack(attack_by_conditions),
    ),
    Fault(
        "hostile-pages",
        "writes that browsers send for pages of another site",
        "the last of them",
        _attack(attack_by_pages),
    ),
    Fault(
        "hostile-slow",
        f"{4 * ATTACKERS * SLOW_CONNECTIONS} connections that send or take slowly, or say nothing",
        "the last of them",
        _attack(attack_by_slowness),
    ),
    Fault(
        "hostile-http-1.0",
        "large responses over HTTP/1.0, while workers are killed with -9",
        "the last kill",
        _attack(attack_by_old_http, kill_workers),
    ),
]
