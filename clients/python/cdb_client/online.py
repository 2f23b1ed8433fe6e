"""Lookups in a service, with as few requests as possible: rows are kept in memory and on disk, and read ahead.

All that is known of a tag belongs to one version of it, which the ETag of each response names. If the tag can change, the
service is asked whether the version is still the present one (a 304 has no body) as often as `max_age` says.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cdb_client.cache import Cache
from cdb_client.contents import State, Stretch
from cdb_client.errors import CdbError, UnavailableError
from cdb_client.moments import AFTER_ALL, FIRST, OPEN, Moment, as_moment, exclusive_end, wire_end
from cdb_client.payload import COLUMNS
from cdb_client.sources import AsOf, Found, Item, label, past, window
from cdb_client.transport import Query, Transport, segment

MODE = "CDB_IOV_MODE"


class Online:
    """The source that asks a service. It can be used by several threads."""

    def __init__(self, transport: Transport) -> None:
        self.transport, self.name = transport, transport.config.server
        self.cache = Cache(transport.config.cache)
        self.lock = threading.RLock()
        self._settings: dict[str, Any] = {}
        self._tags: dict[tuple[str, AsOf | None], _Tag] = {}

    def close(self) -> None:
        """Close the file of the cache."""
        with self.lock:
            self.cache.close()

    def tags(self) -> list[Item]:
        """The tag items."""
        return cast(list[Item], self.transport.get("globalTags", is_slow=True).json())

    def types(self) -> list[Item]:
        """The payload types."""
        return cast(list[Item], self.transport.get("pt", is_slow=True).json())

    def statuses(self) -> list[Item]:
        """The statuses of tags."""
        return cast(list[Item], self.transport.get("gtstatus").json())

    def setting(self, name: str) -> Any:
        """A public setting, which is asked for once."""
        if name not in self._settings:
            found = self.transport.get(f"user_settings/{segment(name)}", about=f"setting {name}").json()
            if not isinstance(found, dict) or name not in found:
                detail = f"The response has no setting {name}. Is this the address of a cdb service?"
                raise CdbError(f"{detail} ({self.transport.config.server})")
            self._settings[name] = found[name]
        return self._settings[name]

    def state_of(self, name: str, as_of: AsOf | None) -> Item:
        """The tag item in that state."""
        query, about = [("light", "1"), *past([as_of])], f"tag {label(name, as_of)}"
        return cast(Item, self.transport.get(f"globalTag/{segment(name)}", query, about=about).json())

    def find(self, name: str, as_of: AsOf | None, moment: Moment) -> Found:
        """The rows at a moment: without a request if they are known and need not be validated."""
        return self._tag(name, as_of).find(moment)

    def prefetch(self, name: str, as_of: AsOf | None, since: Moment | None, until: Moment | None) -> None:
        """Read all that is valid in a window."""
        self._tag(name, as_of).prefetch(since, until)

    def range(
        self,
        names: Sequence[str],
        states: Sequence[AsOf | None],
        since: Moment | None,
        until: Moment | None,
        types: Sequence[str],
    ) -> list[Item]:
        """The elements of `payload-iovs/range`."""
        query = [("gtName", name) for name in names] + past(states) + [("payloadType", name) for name in types]
        query += window(since, until)
        about = f"tag {', '.join(map(label, names, states))}"
        return cast(list[Item], self.transport.get("payload-iovs/range", query, about=about, is_slow=True).json())

    def remember_mode(self, mode: str) -> None:
        """Use the mode that was stored on disk, instead of asking for it."""
        self._settings.setdefault(MODE, mode)

    def _tag(self, name: str, as_of: AsOf | None) -> "_Tag":
        found = self._tags.get((name, as_of))
        return found or self._tags.setdefault((name, as_of), _Tag(self, name, as_of))


class _Tag:
    """A tag in the present, or in a state of the past, with what is known of it."""

    def __init__(self, service: Online, name: str, as_of: AsOf | None) -> None:
        self._service, self._transport, self._cache = service, service.transport, service.cache
        self._max_age = self._transport.config.max_age
        self._query: Query = [("gtName", name), *past([as_of])]
        self._about = f"tag {label(name, as_of)}"
        self._key = "\n".join((self._transport.config.server, name, *(as_of or ())))
        self._state: State | None = None
        # When the present version was asked for, on the monotonic clock. What other processes have asked counts with `max_age`.
        self._asked = -1.0 if self._max_age is None else 0.0

    def find(self, moment: Moment) -> Found:
        """The rows at a moment."""
        state = self._state
        if state is None or not self._is_current(state) or not (stretch := state.at(moment)):
            with self._service.lock:
                found = self._known(moment)
                if found is None:
                    with self._cache.locked(self._key):
                        # Another process may have asked meanwhile.
                        found = self._known(moment) or self._ask(moment)
                state, stretch = found
        return Found(state.revision, stretch.rows_at(moment))

    def prefetch(self, since: Moment | None, until: Moment | None) -> None:
        """Read all that is valid in a window."""
        start = since or FIRST
        with self._service.lock:
            for _ in range(3):
                known = self._known(start)
                end = AFTER_ALL if until is None else exclusive_end(until, self._service.setting(MODE))
                if (known and known[1].until >= end) or self._read(start, end):
                    return
                self._look_up(start)
        raise UnavailableError(f"The tag changes while it is read ({self._transport.config.server}, {self._about})")

    def _is_current(self, state: State) -> bool:
        if state.is_immutable:
            return True
        # A client sees its own writes.
        is_seen = self._asked >= self._transport.written
        return is_seen and (self._max_age is None or abs(time.time() - state.checked) < self._max_age)

    def _known(self, moment: Moment) -> tuple[State, Stretch] | None:
        """What is known of a moment in memory or on disk, after validation if that is necessary."""
        state = self._state
        stretch = state.at(moment) if state else None
        if stretch is None:
            found = self._cache.find(self._key, state.version if state else "", moment)
            if found is None:
                return None
            state, stretch = state or found[0], found[1]
            state.add(stretch)
            self._state = state
            self._service.remember_mode(state.mode)
        state = cast(State, state)
        if not self._is_current(state):
            version = state.version
            state = self._look_up(state.moment, state.etag)
            if state.version == version and self._max_age:
                self._cache.store(self._key, state, stretch)
            stretch = state.at(moment)
        return (state, stretch) if stretch else None

    def _ask(self, moment: Moment) -> tuple[State, Stretch]:
        """The answer of the service for a moment that is not known; a stretch around it is read, unless it is the first one."""
        ahead = self._state.ahead(moment) if self._state else None
        if not (ahead and self._read(*ahead)):
            self._look_up(moment)
        state = cast(State, self._state)
        return state, cast(Stretch, state.at(moment))

    def _look_up(self, moment: Moment, etag: str | None = None) -> State:
        """Ask for the rows at a moment. Returns the present version of the tag, which has them; or with `etag`, the same one."""
        asked, checked, state = time.monotonic(), time.time(), self._state
        query = [*self._query, ("majorIOV", str(moment.major)), ("minorIOV", str(moment.minor)), ("window", "1")]
        about = f"{self._about}, moment {moment}"
        response = self._transport.get("payloadiovs/", query, etag=etag, about=about)
        if state is None or response.status == 200:
            headers = response.headers
            try:
                version, revision = _version(headers), int(headers["cdb-revision"])
                since, until = (as_moment(headers[f"cdb-valid-{name}"]) for name in ("since", "until"))
            except KeyError as missing:
                detail = f"The response has no header {missing}. Is this the address of a cdb service?"
                raise CdbError(f"{detail} ({self._transport.config.server}, {about})") from None
            if state is None or state.version != version:
                is_immutable = "immutable" in headers.get("cache-control", "")
                mode = self._service.setting(MODE)
                state = State(version, revision, mode, is_immutable, moment, headers.get("etag", ""), checked)
            end = exclusive_end(until, state.mode)
            if until == OPEN and moment < OPEN and state.mode == "continuous":
                # This end may also mean that the last of all moments is not included.
                end = OPEN
            self._add(state, Stretch(since, end, response.json(), body=response.body))
        state.checked, self._state, self._asked = checked, state, asked
        return state

    def _read(self, start: Moment, end: Moment) -> bool:
        """Read all rows of a stretch. Returns False if the tag changes meanwhile."""
        asked, checked = time.monotonic(), time.time()
        state = self._state if self._state and self._state.reaching(start) else self._look_up(start)
        base = list(cast(Stretch, state.reaching(start)).rows_at(start).values())
        query = [*self._query, *window(start, wire_end(end, state.mode) if end < OPEN else None)]
        response = self._transport.get("payload-iovs/range", query, about=self._about, is_slow=True)
        if _version(response.headers) != state.version:
            return False
        changes = [
            [element["payload_type"], *(element[column] for column in COLUMNS[1:])] for element in response.json()
        ]
        self._add(state, Stretch(start, end, base, changes))
        state.checked, self._asked = checked, asked
        return True

    def _add(self, state: State, stretch: Stretch) -> None:
        state.add(stretch)
        self._cache.store(self._key, state, stretch)


def _version(headers: Mapping[str, str]) -> str:
    """The version of a tag that a response names. In an ETag, a digest of the request follows it."""
    return f"{headers.get('cdb-revision')} {headers.get('etag', '').removeprefix('W/').rpartition('-')[0]}"
