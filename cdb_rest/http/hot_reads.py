"""What jobs ask before each lookup: small reads that are answered without Django, by a kept body and one query.

PostgreSQL makes the JSON text. A process keeps it, with the version of the tag or table from which it was made. Each request asks
the database whether that is still the version, in one query that also returns the new text if it is not. Requests that wait share
the query (`cdb_rest.lookup.shared_reads`).
"""

import json
from collections.abc import Mapping
from datetime import datetime
from time import monotonic
from typing import Any, NamedTuple

from django.conf import settings

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.http.caching import digest_of, headers_of, read_validators
from cdb_rest.lookup.model import ALL_TAGS, State
from cdb_rest.lookup.shared_reads import SharedReads
from cdb_rest.routes import Hot
from cdb_rest.rules.errors import GlobalTagNotFoundError, SettingNotFoundError

STATEMENTS = {
    Hot.GLOBAL_TAGS: named_sql.load("hot_global_tags"),
    Hot.GLOBAL_TAG: named_sql.load("hot_global_tag"),
    Hot.PAYLOAD_LISTS: named_sql.load("hot_payload_lists"),
    Hot.STATUSES: named_sql.load("hot_statuses"),
    Hot.PAYLOAD_TYPES: named_sql.load("hot_payload_types"),
}
# Status, headers and body of a response.
Response = tuple[int, dict[str, str], bytes]


class _Kept(NamedTuple):
    """A body, and the state from which it was made, which a query that was sent at `begun` has confirmed."""

    begun: float
    state: State
    body: bytes


_kept = SharedReads[_Kept]()


def respond(kind: Hot, name: str, meta: Mapping[str, Any]) -> Response:
    """Status (200 or 304), headers and body of the response. `name` is that of the tag or setting, or empty.

    `meta` has the request's headers by their WSGI names. Must not be called in a snapshot, nor by a request that writes. Raises
    `GlobalTagNotFoundError`, `SettingNotFoundError` or `django.db.Error`.
    """
    if kind is Hot.SETTING:
        return 200, {"Content-Type": "application/json", "Cache-Control": "no-store"}, _setting(name)
    digest = digest_of(kind.value, name)
    kept = _read(kind, name)
    if read_validators(meta, digest).match(kept.state):
        return 304, headers_of(kept.state, digest, meta), b""
    return 200, headers_of(kept.state, digest) | {"Content-Type": "application/json"}, kept.body


def _read(kind: Hot, name: str) -> _Kept:
    key = kind, name
    with _kept.turn(key) as shared:
        if shared:
            return shared
        begun, last = monotonic(), _kept.last(key)
        rows = fetch_all(STATEMENTS[kind], {"name": name, "known": [last.state.version] if last else []})
        if not rows:
            raise GlobalTagNotFoundError(name)
        version: str
        status: str | None
        modified: datetime | None
        text: str | None
        [(version, status, modified, text)] = rows
        body = text.encode() if text is not None or last is None else last.body
        found = _Kept(begun, State(version, status or ALL_TAGS, modified), body)
        _kept.remember(key, found)
        return found


def _setting(name: str) -> bytes:
    if name not in settings.CDB_PUBLIC_SETTINGS:
        raise SettingNotFoundError(name)
    return json.dumps({name: settings.CDB_PUBLIC_SETTINGS[name]}, separators=(",", ":")).encode()
