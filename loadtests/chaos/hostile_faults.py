"""Attacks that any client can make: preconditions, pages of other sites, slow connections, HTTP/1.0.

The attackers are separate processes, which check the responses: a successful attack counts as a wrong response.
"""

import contextlib
import random
import socket
import time
from collections.abc import Callable, Iterator

from loadtests.chaos.clients import Scene
from loadtests.chaos.faults import crowd, kill_workers
from loadtests.chaos.log import ANSWERED, WRONG, Log
from loadtests.chaos.stage import fault
from loadtests.client import lookup_path
from loadtests.service import PREFIX

ATTACKERS = 4
# For each attacker, of each kind of slow connection: more than the service has threads, and than it once had
# slots for writes.
SLOW_CONNECTIONS = 40
OPEN_WRITES = 30
EVIL = "https://evil.example"
ORIGINS = [{"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}]
OLD, NEW = "Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
CONDITIONS = [{"If-Match": text} for text in ('"x"', "*", "")] + [{"If-None-Match": text} for text in ('"x"', "*")]
CONDITIONS += [{"If-Unmodified-Since": OLD}, {"If-Unmodified-Since": NEW}, {"If-Modified-Since": OLD}]
CONDITIONS += [
    {"Range": "bytes=0-3"},
    {"If-Range": '"x"', "Range": "bytes=0-3"},
    {"If-Match": '"x"', "If-None-Match": '"x"'},
]


def attack_by_conditions(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Send conditional reads of cached responses, some 50 per second each, beside incomplete writes."""
    name, client = scene.written.name if number % 2 else scene.frozen.name, scene.client()
    paths = [lookup_path(name, (1, 0)), f"globalTag/{name}", f"gtPayloadLists/{name}", "globalTags"]
    with _opened(scene, OPEN_WRITES, lambda _: _write("Content-Length: 1000\r\n") + b"{"):
        while True:
            condition = random.choice(CONDITIONS)
            # nginx itself responds to an empty condition.
            is_empty = "" in condition.values()
            path, expected = random.choice(paths), (200, 304, 412)
            log.add(client, "GET", path, expected=expected, may_be_html=is_empty, **condition)
            yield


def attack_by_pages(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Send writes as a browser does for a page of another site."""
    client = scene.client()
    attacks = [
        ("POST", "payload-iovs/insert", scene.written.row(0, 10**9) | {"until": "open"}),
        ("POST", f"cloneGlobalTag/{scene.frozen.name}/evil", None),
        ("PUT", f"gt_change_status/{scene.written.name}/frozen", None),
        ("DELETE", f"deleteGlobalTag/{scene.written.name}", None),
    ]
    while True:
        log.add(client, *random.choice(attacks), expected=(403,), **random.choice(ORIGINS))
        yield


def attack_by_slowness(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Send request heads and bodies byte by byte, and do not read large responses. These requests are not counted."""
    whole = f"GET {PREFIX}gt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    kinds = [_write("Content-Length: 9000000\r\n") + b"{", whole[:-2], whole, b""]
    with _opened(scene, len(kinds) * SLOW_CONNECTIONS, lambda place: kinds[place // SLOW_CONNECTIONS]) as connections:
        while True:
            # Connections that the service has closed are opened again.
            for place, connection in enumerate(connections[: 2 * SLOW_CONNECTIONS]):
                if not _send_byte(connection):
                    connection.close()
                    with contextlib.suppress(OSError):
                        connections[place] = _open(scene, kinds[place // SLOW_CONNECTIONS])
            scene.over.wait(1)
            yield


def _send_byte(connection: socket.socket) -> bool:
    """Send another byte; returns whether the service has neither responded nor closed the connection."""
    try:
        connection.send(b"x")
        connection.recv(1, socket.MSG_DONTWAIT)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def attack_by_old_http(scene: Scene, log: Log, number: int) -> Iterator[None]:
    """Request large responses over HTTP/1.0, with which a client cannot detect that a response was cut."""
    while True:
        for path in (f"global-tags/{scene.frozen.name}/export", f"globalTag/{scene.frozen.name}"):
            begin, fault = time.monotonic(), None
            head, _, body = _request_http_1_0(scene, path).partition(b"\r\n\r\n")
            if "export" in path and not head.startswith((b"HTTP/1.1 400", b"HTTP/1.1 504")):
                fault = f"export over HTTP/1.0: {head[:60]!r}, {len(body)} bytes"
            elif b"\netag" in head.lower():
                fault = f"{path} over HTTP/1.0 has an ETag"
            log.record(begin, WRONG if fault else ANSWERED, fault)
        yield


def _request_http_1_0(scene: Scene, path: str) -> bytes:
    """The bytes received until the connection ended or failed; if there are none, a 504, which is expected."""
    received = b""
    with contextlib.suppress(OSError), scene.connect(timeout=60) as connection:
        connection.sendall(f"GET {PREFIX}{path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
        while piece := connection.recv(65536):
            received += piece
    return received or b"HTTP/1.1 504"


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
    connection = scene.connect()
    connection.sendall(beginning)
    return connection


def _write(headers: str) -> bytes:
    """The head of a write request with these additional headers."""
    head = f"POST {PREFIX}pt HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}{headers}\r\n".encode()


READS = f"conditional reads that once crashed nginx, while {ATTACKERS * OPEN_WRITES} writes stay incomplete"
PAGES = "writes that browsers send for pages of another site"
SLOW = f"{4 * ATTACKERS * SLOW_CONNECTIONS} connections that send or read slowly, or send nothing"
OLD_HTTP = "large responses over HTTP/1.0, while workers are killed (SIGKILL)"
fault("hostile-conditions", READS, "the last request", loop=attack_by_conditions, number=ATTACKERS)(crowd)
fault("hostile-pages", PAGES, "the last request", loop=attack_by_pages, number=ATTACKERS)(crowd)
fault("hostile-slow", SLOW, "the last connection", loop=attack_by_slowness, number=ATTACKERS)(crowd)
fault("hostile-http-1.0", OLD_HTTP, "the last kill", loop=attack_by_old_http, during=kill_workers, number=ATTACKERS)(
    crowd
)
