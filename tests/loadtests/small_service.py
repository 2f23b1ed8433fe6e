"""A service with few routes and a chosen fault, for the clients of `make chaos`."""

import json
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cdb_rest.rules.moment import Moment
from loadtests.chaos.oracle import WrittenTag
from loadtests.content.expected import Expected, row_of

SCENARIO = "tiny"
COUNTS = {"payload_lists_count": 10, "payload_iov_count": 100}
EXPECTED = Expected(SCENARIO, "random", 1, tag="frozen")
JSON = b"Content-Type: application/json\r\n"


class SmallService(ThreadingHTTPServer):
    """A service of two tags that keeps rows in memory, and responds to every fifth request with its `fault`."""

    daemon_threads = True

    def __init__(self, fault):
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault = fault
        self.rows = {}
        self.requests = 0

    def handle_error(self, *_):
        """Ignore errors: the faults close connections."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        numbers = self.server.rows.setdefault(row["payload_type"], [])
        if row["size"] not in numbers and not (self.server.fault == "forgets" and row["size"] % 5 == 4):
            numbers.append(row["size"])
        self.respond({"rows": [{"added": {"payload_url": row["payload_url"]}}]})

    def do_GET(self):
        self.server.requests += 1
        is_turn = self.server.requests % 5 == 0
        kind = self.server.fault if is_turn else None
        if kind == "resets":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
            return
        if kind == "cuts":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[")
            self.close_connection = True
            return
        if kind == "page":
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>")
            return
        if kind == "refuses":
            self.respond({"detail": "later", "code": "overloaded"}, "504 Gateway Timeout", b"Retry-After: 5\r\n")
            return
        if kind == "fails":
            self.respond({"detail": "bug", "code": "internal_error"}, "500 Internal Server Error")
            return
        major = int(self.path.partition("majorIOV=")[2].split("&")[0] or 0)
        if "globalTags" in self.path:
            written = sum(len(numbers) for numbers in self.server.rows.values())
            self.respond(
                [
                    {"name": "frozen", "status": "frozen", **COUNTS},
                    {"name": "written", "status": "unlocked", "payload_iov_count": written},
                ]
            )
        elif "gtName=frozen" in self.path:
            body = EXPECTED.body(Moment(major, int(self.path.split("minorIOV=")[1])), False)
            self.respond(body.replace(b'"1"]]', b'"2"]]') if kind == "lies" else body)
        else:
            tag = WrittenTag("written", [], [])
            latest = [
                (int(name[-2:]), max([number for number in numbers if number <= major], default=-1))
                for name, numbers in sorted(self.server.rows.items())
            ]
            old = 3 if kind == "is_stale" else 0
            self.respond([row_of(tag.row(writer, number - old)) for writer, number in latest if number - old >= 0])

    def respond(self, said, status="200 OK", more=b""):
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        head = b"HTTP/1.1 %s\r\n%s%sContent-Length: %d\r\n\r\n" % (status.encode(), JSON, more, len(body))
        self.wfile.write(head + body)

    def log_message(self, *_):
        pass
