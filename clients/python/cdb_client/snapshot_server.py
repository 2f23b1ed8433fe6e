"""A snapshot over HTTP: the reads that existing clients send, with the responses of the service at the snapshot's revisions.

The body of a lookup, of `gtPayloadLists`, `pt`, `gtstatus`, `user_settings` and of a tag item has the bytes of the service.
What differs: `globalTag` without `light` names the payload lists without their IOVs, because a snapshot has no ids; what the
snapshot does not contain gets 404 with the code `outside_snapshot`; there are no writes, and no other reads.
"""

import json
import socket
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from cdb_client.errors import CdbError, InputError, NotFoundError, OutsideSnapshotError
from cdb_client.moments import LARGEST, Moment
from cdb_client.payload import COLUMNS
from cdb_client.snapshot_file import SnapshotFile
from cdb_client.sources import AsOf, Row

PREFIX = "/api/cdb_rest/"
# The fixed segments of paths; the name of a tag or setting follows where there is one.
PATHS = {
    ("globalTags",): "tags",
    ("global-tags",): "tags",
    ("globalTag", None): "tag",
    ("gtstatus",): "statuses",
    ("global-tags", "statuses"): "statuses",
    ("global-tags", None): "tag",
    ("gtPayloadLists", None): "lists",
    ("global-tags", None, "payload-lists"): "lists",
    ("pt",): "types",
    ("payload-types",): "types",
    ("payloadiovs",): "lookup",
    ("payload-iovs", "query"): "lookup",
    ("user_settings", None): "setting",
    ("settings", None): "setting",
}
PAST = ("rev", "at")
TYPES = ("payloadType", "payload_type")
# Parameters that would change a response are errors where they have no meaning.
SIGNIFICANT = {*PAST, *TYPES, "revision", "strict", "dry_run", "page"}
KNOWN = {"lookup": {*PAST, *TYPES, "strict"}, "tag": {*PAST}, "lists": {*PAST}}
FLAGS = {"": True, "1": True, "true": True, "0": False, "false": False}
IMMUTABLE = "public, max-age=31536000, immutable"
# As PostgreSQL writes arrays and objects, and as the service writes what it has parsed.
ARRAY = json.JSONEncoder(ensure_ascii=False)
OBJECT = json.JSONEncoder(ensure_ascii=False, separators=(", ", " : "))
COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Reply(NamedTuple):
    """A response, before its ETag is known."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class RequestError(Exception):
    """A request that is not answered; `field` is the parameter that is wrong."""

    def __init__(self, status: int, code: str, detail: str, field: str = "") -> None:
        super().__init__(detail)
        document: dict[str, Any] = {"detail": detail, "code": code}
        self.reply = Reply(status, _compact(document | ({field: [detail]} if field else {})), {})


def lookup_body(rows: Sequence[Row], *, as_objects: bool = False, is_selected: bool = False) -> bytes:
    """The body of a lookup with these rows, as the service writes it; `is_selected` if the request names payload types."""
    found = [dict(zip(COLUMNS, row, strict=True)) for row in rows] if as_objects else rows
    if is_selected:
        return _compact(found)
    encode = (OBJECT if as_objects else ARRAY).encode
    return f"[{','.join(map(encode, found))}]".encode()


class Reads:
    """The responses to reads of a snapshot."""

    def __init__(self, snapshot: SnapshotFile) -> None:
        self.snapshot = snapshot

    def reply(self, target: str) -> Reply:
        """The response to a GET. Raises `RequestError`, and `CdbError` for what the snapshot does not have."""
        parts = urlsplit(target)
        if parts.path.rstrip("/") in ("/health/live", "/health/ready"):
            return Reply(200, b'{"status": "%s"}' % parts.path.rstrip("/").rpartition("/")[2].encode(), {})
        kind, name = _route(parts.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        for parameter in query:
            if parameter in SIGNIFICANT and parameter not in KNOWN.get(kind, ()):
                detail = f"{parameter} has no meaning for this request, or not in a snapshot; leave it out."
                raise RequestError(400, "unknown_parameter", detail, parameter)
        for parameter, values in query.items():
            if len(values) > 1 and parameter not in TYPES:
                detail = f"{parameter} may be given only once in a snapshot (got {len(values)})."
                raise RequestError(400, "invalid_input", detail, parameter)
        single = {parameter: values[-1] for parameter, values in query.items()}
        reply: Reply = getattr(self, f"_{kind}")(name, single, query)
        return reply

    def _lookup(self, _: str, query: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> Reply:
        name, shape = query.get("gtName"), query.get("shape", "list")
        if not name:
            raise _invalid("gtName", "gtName is required.")
        if shape not in ("list", "dict"):
            raise _invalid("shape", f"shape must be list or dict (got {shape!r}).")
        moment = Moment(_number("majorIOV", query.get("majorIOV")), _number("minorIOV", query.get("minorIOV")))
        strict, snap = _flag("strict", query), _flag("snap", query)
        types = [one for parameter in TYPES for text in lists.get(parameter, ()) for one in text.split(",")]
        if "" in types:
            raise _invalid(TYPES[0], "The name of a payload type must not be empty.")
        headers = self._state(name, query)
        rows = self.snapshot.look_up(name, moment, strict=strict, types=types)
        if snap or _flag("window", query):
            since, until = self.snapshot.window(name, moment, strict=strict, types=types)
            headers |= {"CDB-Valid-Since": "{},{}".format(*since), "CDB-Valid-Until": "{},{}".format(*until)}
            if snap:
                headers["CDB-Canonical-Moment"] = headers["CDB-Valid-Since"]
        return Reply(200, lookup_body(rows, as_objects=shape == "dict", is_selected=bool(types)), headers)

    def _tags(self, *_: Any) -> Reply:
        items = sorted(self.snapshot.tags(), key=lambda item: int(item["id"]))
        return Reply(200, _compact(items), {"Cache-Control": "public, no-cache"})

    def _tag(self, name: str, query: Mapping[str, str], _: Any) -> Reply:
        headers = self._state(name, query)
        document = self.snapshot.tag(name).document
        if query.get("light", "0") not in ("0", "false"):
            return Reply(200, _compact(document), headers)
        status = next((one for one in self.snapshot.statuses() if one["name"] == document["status"]), None)
        lists = [
            {"name": one, "global_tag": name, "payload_type": payload_type}
            for payload_type, one in self.snapshot.lists(name).items()
        ]
        left_out = ("payload_lists_count", "payload_iov_count", "revision")
        nested = {member: value for member, value in document.items() if member not in left_out}
        nested |= {"status": status or {"name": document["status"]}, "payload_lists": lists}
        return Reply(200, _compact(nested), headers)

    def _lists(self, name: str, query: Mapping[str, str], _: Any) -> Reply:
        return Reply(200, _compact(self.snapshot.lists(name)), self._state(name, query))

    def _types(self, *_: Any) -> Reply:
        return Reply(200, _compact(self.snapshot.types()), {"Cache-Control": "public, no-cache"})

    def _statuses(self, *_: Any) -> Reply:
        return Reply(200, _compact(self.snapshot.statuses()), {"Cache-Control": "public, no-cache"})

    def _setting(self, name: str, *_: Any) -> Reply:
        try:
            return Reply(200, _compact({name: self.snapshot.setting(name)}), {"Cache-Control": "no-store"})
        except NotFoundError as error:
            raise RequestError(404, "setting_not_found", str(error)) from None

    def _state(self, name: str, query: Mapping[str, str]) -> dict[str, str]:
        """The headers of a response made from the state of a tag, after `rev` and `at` were checked.

        Another snapshot may be served at this address later; so caches may keep only what was asked for a revision, and frozen
        tags.
        """
        if "rev" in query and "at" in query:
            raise _invalid("at", "rev and at must not be given together.")
        rev = str(_number("rev", query["rev"])) if "rev" in query else None
        as_of = AsOf("at", query["at"]) if "at" in query else AsOf("rev", rev) if rev is not None else None
        tag = self.snapshot.tag(name, as_of)
        lasting = rev is not None or tag.document["status"] == "frozen"
        return {"CDB-Revision": str(tag.revision), "Cache-Control": IMMUTABLE if lasting else "public, no-cache"}


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "cdb-snapshot", ""
    disable_nagle_algorithm = True
    wbufsize = -1
    # Seconds until a connection without a request is closed.
    timeout = 65
    raw_requestline: bytes

    def parse_request(self) -> bool:
        # Clients need not escape spaces in paths.
        method, _, rest = self.raw_requestline.rstrip(b"\r\n").partition(b" ")
        target, _, version = rest.rpartition(b" ")
        self.raw_requestline = b"%s %s %s\r\n" % (method, target.replace(b" ", b"%20"), version)
        return super().parse_request()

    def do_GET(self) -> None:
        # The line was decoded as Latin-1. Clients need not escape UTF-8 either.
        target = self.path.encode("latin-1").decode(errors="replace")
        try:
            reply = self.server.reads.reply(target)
        except RequestError as error:
            reply = error.reply
        except OutsideSnapshotError as error:
            reply = RequestError(404, "outside_snapshot", str(error)).reply
        except NotFoundError as error:
            reply = RequestError(404, "payload_type_not_found", str(error)).reply
        except InputError as error:
            reply = RequestError(400, "invalid_input", str(error)).reply
        except CdbError as error:
            reply = RequestError(500, "damaged_snapshot", str(error)).reply
        self._send(reply)

    do_HEAD = do_GET  # noqa: N815 -- names of the base class

    def _refuse(self) -> None:
        # A body that was not read would break the connection before the client has read the response.
        length = self.headers.get("Content-Length", "")
        self.rfile.read(min(int(length), 2**20) if length.isdigit() else 0)
        self.close_connection = True
        detail = f'Method "{self.command}" not allowed: this is a snapshot, which can only be read.'
        reply = RequestError(405, "method_not_allowed", detail).reply
        self._send(reply._replace(headers={"Allow": "GET, HEAD", "Connection": "close"}))

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse  # noqa: N815

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Errors of HTTP itself; clients expect JSON."""
        self.close_connection = True
        detail = message or HTTPStatus(code).phrase
        reply = RequestError(code, "malformed_request", detail).reply
        self._send(reply._replace(headers={"Connection": "close"}))

    def _send(self, reply: Reply) -> None:
        status, body, headers = reply.status, reply.body, dict(reply.headers)
        headers.setdefault("Cache-Control", "no-store")
        if status == 200 and headers["Cache-Control"] != "no-store":
            headers["ETag"] = f'"{blake2b(body, digest_size=12).hexdigest()}"'
            asked = self.headers.get("If-None-Match", "")
            if headers["ETag"] in asked or asked.strip() == "*":
                status, body = 304, b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if getattr(self, "command", "") != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """No log."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

    def __init__(self, address: tuple[str, int], reads: Reads) -> None:
        self.reads = reads
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # Without the name server that the base class asks.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may disconnect at any time."""


def make_server(path: str | Path, port: int, address: str = "127.0.0.1") -> ThreadingHTTPServer:
    """An HTTP server of a snapshot, which listens; 0 is any free port. Raises `InputError` if it cannot listen there."""
    reads = Reads(SnapshotFile(path))
    try:
        return _Server((address, port), reads)
    except (OSError, OverflowError) as error:
        raise InputError(f"Cannot listen on {address} port {port}: {error}") from None


def serve(path: str | Path, port: int, address: str = "127.0.0.1") -> None:
    """Serve a snapshot over HTTP until it is interrupted."""
    with make_server(path, port, address) as server:
        server.serve_forever()


def _route(path: str) -> tuple[str, str]:
    """The kind of a read, and the name in its path."""
    segments = [unquote(one) for one in path.removeprefix(PREFIX).rstrip("/").split("/")]
    if path.startswith(PREFIX):
        for pattern, kind in PATHS.items():
            if len(pattern) == len(segments) and all(
                one is None or one == segment for one, segment in zip(pattern, segments, strict=True)
            ):
                return kind, next((segment for one, segment in zip(pattern, segments, strict=True) if one is None), "")
    raise RequestError(404, "route_not_found", f"There is nothing at {path!r} in a snapshot.")


def _number(name: str, text: str | None) -> int:
    digits = (text or "").removeprefix("-")
    if not (text and digits.isascii() and digits.isdigit() and len(digits) <= 30 and 0 <= int(text) <= LARGEST):
        given = repr(text) if text else "nothing"
        raise _invalid(name, f"{name} must be an integer from 0 to {LARGEST} (got {given}).")
    return int(text)


def _flag(name: str, query: Mapping[str, str]) -> bool:
    if name in query and query[name] not in FLAGS:
        given = query[name]
        raise _invalid(name, f"{name} must be 1, true or empty for on, or 0 or false for off (got {given!r}).")
    return name in query and FLAGS[query[name]]


def _invalid(name: str, detail: str) -> RequestError:
    return RequestError(400, "invalid_input", detail, name)


def _compact(document: Any) -> bytes:
    return COMPACT.encode(document).encode()
