"""A snapshot over HTTP: the reads of nopayloaddb, as existing clients send them, with the bytes of the service.

Differences from the service: `globalTag` without `light` names the payload lists without ids and IOVs; responses must not be
cached; what the snapshot does not contain gets 404 with the code `outside_snapshot`; there are no other routes, parameters and
methods.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cdb_client.client import Client
from cdb_client.errors import CdbError, InputError, NotFoundError, OutsideSnapshotError
from cdb_client.moments import as_moment
from cdb_client.payload import COLUMNS
from cdb_client.snapshot_file import SnapshotFile, SnapshotTag
from cdb_client.sources import AsOf, Item
from cdb_client.tag import Tag

PREFIX = "/api/cdb_rest/"
# The routes and their parameters. After a slash follows the name of a global tag or setting.
ROUTES: dict[str, tuple[str, ...]] = {
    "globalTags": (),
    "globalTag/": ("light", "rev"),
    "gtPayloadLists/": ("rev",),
    "gtstatus": (),
    "pt": (),
    "user_settings/": (),
    "payloadiovs": ("gtName", "majorIOV", "minorIOV", "shape", "strict", "payloadType", "rev"),
}
FLAGS = {"0": False, "false": False, "": True, "1": True, "true": True}
SHAPES = {"list": False, "dict": True}
ERRORS: dict[type[CdbError], tuple[int, str]] = {
    OutsideSnapshotError: (404, "outside_snapshot"),
    NotFoundError: (404, "not_found"),
    InputError: (400, "invalid_input"),
}
# As PostgreSQL writes arrays and objects; and as the service writes what it has parsed, such as selected payload types.
ARRAY = json.JSONEncoder(ensure_ascii=False)
OBJECT = json.JSONEncoder(ensure_ascii=False, separators=(", ", " : "))
COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Reads:
    """The responses to reads of a snapshot."""

    def __init__(self, path: str | Path) -> None:
        self._snapshot = SnapshotFile(path)
        self._client = Client(snapshot=path)

    def reply(self, target: str) -> tuple[bytes, int | None]:
        """The body of the response to a GET, and the revision of the tag that it is about. Raises `CdbError`."""
        parts = urlsplit(target)
        route, slash, name = parts.path.removeprefix(PREFIX).rstrip("/").partition("/")
        if not parts.path.startswith(PREFIX) or route + slash not in ROUTES:
            raise NotFoundError(f"There is nothing at {parts.path} in a snapshot.")
        given = parse_qsl(parts.query, keep_blank_values=True)
        query = dict(given)
        if len(query) < len(given) or not query.keys() <= set(ROUTES[route + slash]):
            allowed = ", ".join(ROUTES[route + slash]) or "none"
            raise InputError(f"A snapshot accepts these parameters here, each once: {allowed} (got {parts.query!r}).")
        as_of = AsOf("rev", query["rev"]) if "rev" in query else None
        snapshot, name = self._snapshot, unquote(name)
        match route:
            case "globalTags":
                return _compact(sorted(snapshot.tags(), key=lambda item: int(item["id"]))), None
            case "globalTag":
                tag = snapshot.tag(name, as_of)
                return _compact(tag.document if "light" in query else self._nested(tag)), tag.revision
            case "gtPayloadLists":
                tag = snapshot.tag(name, as_of)
                return _compact(tag.lists), tag.revision
            case "gtstatus":
                return _compact(snapshot.statuses()), None
            case "pt":
                return _compact(snapshot.types()), None
            case "user_settings":
                return _compact({name: snapshot.setting(name)}), None
        return self._lookup(query, as_of)

    def _lookup(self, query: Mapping[str, str], as_of: AsOf | None) -> tuple[bytes, int]:
        moment = as_moment(f"{query.get('majorIOV')},{query.get('minorIOV')}")
        strict, as_objects = _choice("strict", query, FLAGS, "0"), _choice("shape", query, SHAPES, "list")
        types = query["payloadType"].split(",") if "payloadType" in query else None
        tag = Tag(self._client, (query.get("gtName", ""),), (as_of,))
        found = tag.resolve(moment, strict=strict, types=types)
        rows = [dict(zip(COLUMNS, iov.row, strict=True)) if as_objects else iov.row for iov in found.values()]
        if types is not None:
            return _compact(rows), found.revisions[0]
        return f"[{','.join(map((OBJECT if as_objects else ARRAY).encode, rows))}]".encode(), found.revisions[0]

    def _nested(self, tag: SnapshotTag) -> Item:
        left_out = ("payload_lists_count", "payload_iov_count", "revision")
        return {
            **{member: value for member, value in tag.document.items() if member not in left_out},
            "status": next(one for one in self._snapshot.statuses() if one["name"] == tag.document["status"]),
            "payload_lists": [
                {"name": name, "global_tag": tag.name, "payload_type": payload_type}
                for payload_type, name in tag.lists.items()
            ],
        }


def _choice(name: str, query: Mapping[str, str], choices: Mapping[str, bool], default: str) -> bool:
    value = query.get(name, default)
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(filter(None, choices))} (got {value!r}).")
    return choices[value]


def _compact(document: Any) -> bytes:
    return COMPACT.encode(document).encode()


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "cdb-snapshot", ""
    disable_nagle_algorithm = True
    # Seconds until a connection without a request is closed.
    timeout = 65

    def do_GET(self) -> None:
        try:
            body, revision = self.server.reads.reply(self.path)
        except CdbError as error:
            status, code = ERRORS.get(type(error), (500, "damaged_snapshot"))
            self._send(status, _compact({"detail": str(error), "code": code}))
        else:
            self._send(200, body, {} if revision is None else {"CDB-Revision": str(revision)})

    def _refuse(self) -> None:
        # A body that was not read would break the connection before the client has read the response.
        self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 2**20))
        self.send_error(405, "A snapshot can only be read.")

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = _refuse  # noqa: N815 -- names of the base class

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Errors of HTTP itself; clients expect JSON."""
        self.close_connection = True
        status = HTTPStatus(code)
        document = {"detail": message or status.phrase, "code": status.name.lower()}
        self._send(code, _compact(document), {"Connection": "close"})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.send_response(status)
        fixed = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        for name, value in {**fixed, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """No log."""


class _Server(ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], reads: Reads) -> None:
        self.reads = reads
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may disconnect at any time."""


def make_server(path: str | Path, port: int, address: str = "127.0.0.1") -> ThreadingTCPServer:
    """An HTTP server of a snapshot, which listens; 0 is any free port. Raises `InputError` if it cannot listen there."""
    reads = Reads(path)
    try:
        return _Server((address, port), reads)
    except OSError as error:
        raise InputError(f"Cannot listen on {address} port {port}: {error}") from None
