"""Durability of fixed states: whether a frozen tag or a past revision would outlive a failover.

A cache keeps an immutable response for a year. So before a response says that it never changes, each standby that may be
promoted must have the state: the restart_lsn of each physical replication slot, also of an inactive one, has passed the position
of the WAL that the primary had when this process first read the state.

A process remembers what it has found. It asks the primary on the connection with which the thread has read the state.
"""

import threading
from collections.abc import Sequence
from contextlib import closing
from time import monotonic
from typing import NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections

from cdb_rest import named_sql
from cdb_rest.observe.request_context import current_context

POSITION = named_sql.load("replication_position")
STANDBYS = named_sql.load("standbys_without_slot")
# Some 5 MB. Those that were noted first are forgotten first.
MOST_VERSIONS = 20_000
# The value for a state that is durable.
DURABLE = None


class _Noted(NamedTuple):
    """A position of the primary's WAL at which a state was committed already. `database` is the identity of the database."""

    database: str
    lsn: int


class _Memory:
    """What the process knows: DURABLE or a position by the version of a state; and the identity of the database.

    `since` is when the process found this identity, which changes with a failover and with a restoration. A request that began
    before may have read a state that is lost.
    """

    def __init__(self) -> None:
        self.noted: dict[str, _Noted | None] = {}
        self.database, self.since = "", 0.0
        self.lock = threading.Lock()


_memory = _Memory()


def is_known(version: str) -> bool:
    """Whether this process has found that the state with this `State.version` is durable. Asks no database."""
    return _memory.noted.get(version, "") is DURABLE


def is_durable(version: str, parts: Sequence[str] = ()) -> bool:
    """Whether the state with this `State.version` can no longer be lost. If it has `parts`, these are the versions that decide.

    The request of this thread must have read the state, and no connection is opened. If the primary does not respond, the
    state is not durable. May be called in a snapshot.
    """
    if is_known(version):
        return True
    missing = [part for part in parts or (version,) if not is_known(part)]
    if missing and not _examine(missing):
        return False
    if parts:
        with _memory.lock:
            _remember(version, DURABLE)
    return True


def _examine(versions: Sequence[str]) -> bool:
    context = current_context.get()
    found = _read_position()
    if found is None:
        return False
    here, slots, reached = found
    with _memory.lock:
        if here.database != _memory.database:
            _memory.database, _memory.since = here.database, monotonic()
        if context is not None and context.began < _memory.since:
            return False
        are_durable = True
        for version in versions:
            earlier = _memory.noted.get(version)
            noted = earlier if earlier and earlier.database == here.database else here
            is_safe = slots >= settings.CDB_REPLICATION_SLOTS and (slots == 0 or reached >= noted.lsn)
            _remember(version, DURABLE if is_safe else noted)
            are_durable &= is_safe
    return are_durable


def _remember(version: str, found: _Noted | None) -> None:
    while len(_memory.noted) >= MOST_VERSIONS and version not in _memory.noted:
        del _memory.noted[next(iter(_memory.noted))]
    _memory.noted[version] = found


def _read_position() -> tuple[_Noted, int, int] | None:
    """The position of the primary's WAL, the number of slots and the least position in them; None if it does not respond."""
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.connection is None:
        return None
    # Otherwise Django might replace the connection by one to another server.
    connection.health_check_done = True  # type: ignore[attr-defined]  # the types lack it
    try:
        with connection.cursor() as cursor:
            cursor.execute(POSITION)
            database, lsn, slots, reached = cursor.fetchone()
    except Error:
        return None
    return (_Noted(database, lsn), slots, reached) if database else None


def watch() -> None:
    """Start a thread that finds the identity of the database, so that the first response can be immutable.

    Threads do not survive a fork.
    """
    threading.Thread(target=_find_identity, name="durability", daemon=True).start()


def _find_identity() -> None:
    with closing(connections[DEFAULT_DB_ALIAS]) as connection:
        try:
            connection.ensure_connection()
        except Error:
            return
        _examine(())


def standbys_without_slot() -> int:
    """How many standbys are connected that have no replication slot. Raises `django.db.Error`."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(STANDBYS)
        number: int
        [number] = cursor.fetchone()
        return number
