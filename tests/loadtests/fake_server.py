"""A service with known delays and faults, which logs its requests and its faults.

`python -m tests.loadtests.fake_server LOG FAULT [--every N] …` prints its port, and responds to `globalTags` and
`payloadiovs/` with the rows of the scenario tiny, unless the fault applies. LOG gets a line of JSON when a request
is received (`number`, `path`, `came`), and one when the response was sent (`number`, `went`, `did`).
"""

import argparse
import asyncio
import contextlib
import json
import socket
import struct
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cdb_rest.domain.moment import Moment
from cdb_rest.scenarios.definitions import SCENARIOS, payload_type_names
from cdb_rest.scenarios.generator import rows_of_type

TINY = SCENARIOS["tiny"]
ROWS = {
    name: list(rows_of_type(TINY, name, layout="random", seed=1)) for name in payload_type_names(TINY.payload_types)
}
TAG = {
    "id": 1,
    "name": "tiny",
    "author": "",
    "status": "unlocked",
    "payload_lists_count": len(ROWS),
    "payload_iov_count": TINY.iovs,
    "created": "2026-01-01T00:00:00Z",
    "updated": "2026-01-01T00:00:00Z",
}
RESET = struct.pack("ii", 1, 0)
PIECES = 5


def lookup(moment):
    """The response to a lookup, computed from all rows."""
    found = []
    for name, rows in sorted(ROWS.items()):
        earlier = [row for row in rows if row.start <= moment]
        if earlier:
            row = max(earlier, key=lambda row: row.start)
            ends = (row.end.major, row.end.minor)
            numbers = (row.size, row.start.major, row.start.minor, *ends)
            found.append([name, row.payload_url, row.checksum, *numbers, row.revision])
    return found


class Fake:
    """The server; it runs until it is killed."""

    def __init__(self, options):
        self.options = options
        self.log = options.log.open("w", buffering=1)
        self.count = 0
        self.first = None
        self.server = None
        self.port = 0

    async def run(self):
        await self.listen()
        sys.stdout.write(f"{self.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()

    async def listen(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port, backlog=4096)
        self.port = self.server.sockets[0].getsockname()[1]

    def note(self, **facts):
        self.log.write(json.dumps(facts) + "\n")

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            # Connections may be kept open.
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await self.respond(head.split(b" ", 2)[1].decode(), writer)
                if writer.is_closing() or b"connection: close" in head.lower():
                    break
        writer.close()

    async def respond(self, path, writer):
        self.count += 1
        number, came = self.count, time.time()
        if self.first is None:
            self.first = came
            if self.options.fault == "refuse":
                asyncio.get_running_loop().create_task(self.refuse())
        self.note(number=number, path=path, came=came)
        is_chosen = number % self.options.every == 0
        fault = self.options.fault if is_chosen else "none"
        await FAULTS.get(fault, plain)(self, self.body(path), writer)
        self.note(number=number, went=time.time(), did=fault)

    def body(self, path):
        parts = urlsplit(path)
        if "payloadiovs" not in parts.path:
            return [dict(TAG)]
        query = parse_qs(parts.query)
        return lookup(Moment(int(query["majorIOV"][0]), int(query["minorIOV"][0])))

    async def refuse(self):
        """Refuse connections for a while."""
        await asyncio.sleep(self.options.since)
        self.server.close()
        await asyncio.sleep(self.options.seconds)
        await self.listen()


def head(length, status=200, more=""):
    return f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}Content-Length: {length}\r\n\r\n".encode()


async def send(writer, content, status=200, more=""):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    writer.write(head(len(text), status, more) + text)
    await writer.drain()


async def plain(fake, body, writer):
    await send(writer, body)


async def delay(fake, body, writer):
    await asyncio.sleep(fake.options.seconds)
    await send(writer, body)


async def error(fake, body, writer):
    await send(writer, {"detail": "broken on purpose", "code": "fake"}, fake.options.status)


async def slow_error(fake, body, writer):
    """Send the head of an error first, and its text later."""
    text = json.dumps({"detail": "broken on purpose", "code": "fake"}).encode()
    writer.write(head(len(text), fake.options.status))
    await asyncio.sleep(fake.options.seconds)
    writer.write(text)


async def stall(fake, body, writer):
    """Delay all requests of a window until its end."""
    since = fake.first + fake.options.since
    if since <= time.time() < since + fake.options.seconds:
        await asyncio.sleep(since + fake.options.seconds - time.time())
    await send(writer, body)


async def close(fake, body, writer):
    writer.close()


async def reset(fake, body, writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def slow_body(fake, body, writer):
    text = json.dumps(body).encode()
    writer.write(head(len(text)))
    size = -(-len(text) // PIECES)
    for place in range(0, len(text), size):
        await asyncio.sleep(fake.options.seconds / PIECES)
        writer.write(text[place : place + size])
        await writer.drain()


async def truncated(fake, body, writer):
    """Send a valid JSON body that is shorter than its Content-Length."""
    text = json.dumps(body).encode()
    writer.write(head(len(text) + 1) + text)
    await writer.drain()
    writer.close()


async def wrong_value(fake, body, writer):
    """Change one checksum, or the name of the tag."""
    if isinstance(body[0], list):
        body[0][2] = body[0][2][::-1]
    else:
        body[0]["name"] = "another"
    await send(writer, body)


async def empty(fake, body, writer):
    await send(writer, [])


async def redirect(fake, body, writer):
    await send(writer, {"detail": "elsewhere"}, 302, "Location: /api/cdb_rest/globalTags\r\n")


async def html(fake, body, writer):
    await send(writer, b"<html><body>All is well.</body></html>")


async def silent(fake, body, writer):
    """Send no response."""
    await asyncio.sleep(3600)


FAULTS = {
    "none": plain, "delay": delay, "error": error, "slow-error": slow_error, "stall": stall, "close": close, "reset": reset,
    "slow-body": slow_body, "truncated": truncated, "wrong-value": wrong_value, "empty": empty, "redirect": redirect,
    "html": html, "silent": silent,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("fault", choices=[*FAULTS, "refuse"])
    parser.add_argument("--every", type=int, default=1, help="apply the fault to every N-th request")
    parser.add_argument("--status", type=int, default=500)
    parser.add_argument("--since", type=float, default=0.0, help="seconds from the first request to the window")
    parser.add_argument("--seconds", type=float, default=0.05, help="a delay, or the length of the window")
    asyncio.run(Fake(parser.parse_args()).run())


if __name__ == "__main__":
    main()
