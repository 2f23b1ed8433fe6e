"""Answers of a service, which are asked for once: in memory, in the cache on disk, and by reading ahead.

All that is known of a tag belongs to one version of it, which the ETag of each response names. If the tag can change, the
service is asked whether the version is still the present one (a 304 has no body) as often as `max_age` says.
"""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from urllib3.exceptions import HTTPError

from cdb_client.cache import Cache
from cdb_client.contents import Stretch, Stretches
from cdb_client.errors import CdbError, InputError, UnavailableError
from cdb_client.moments import AFTER_ALL, FIRST, LARGEST, OPEN, Moment, as_moment, exclusive_end, wire_end
from cdb_client.payload import COLUMNS
from cdb_client.sources import AsOf, Found, Item, past
from cdb_client.transport import Query, Response, Transport, segment

MODE = "CDB_IOV_MODE"
# Reading ahead: the first stretch is so many times as long as that of a lookup, and each further one than the last one, until a
# response would have more than so many rows.
GROWTH = 8
ROWS_AHEAD = 50_000
# A larger response is given up.
BYTES_AHEAD = 30_000_000


@dataclass
class _Tag:
    """A version of a tag, or of a state of it in the past, and the stretches of moments that are known of it."""

    version: str
    revision: int
    mode: str
    is_immutable: bool
    # The lookup whose ETag is compared with the present one.
    validator: Moment
    etag: str
    # When the version was the present one: on the monotonic clock of this process, and on that of the machine.
    checked: float
    checked_at: float
    stretches: Stretches = field(default_factory=Stretches)
    # The length of the next stretch that is read ahead, in moments with minor numbers below `minors`; 0 if it is not known.
    width: int = 0
    # More than the minor numbers that have been seen.
    minors: int = 1

    def position(self, moment: Moment) -> int:
        """A number for a moment, in their order. It is not exact for minor numbers that have not been seen."""
        return moment.major * self.minors + min(moment.minor, self.minors - 1)

    def moment_at(self, place: int) -> Moment:
        """The inverse of `position`."""
        return min(Moment(*divmod(max(place, 0), self.minors)), AFTER_ALL)

    def learn(self, stretch: Stretch) -> None:
        """Set how much is read ahead next, after this stretch."""
        starting = 1
        for row in (*stretch.base, *stretch.changes):
            if row[5] >= self.minors:
                self.minors = row[5] + 1
            if self.minors <= row[7] < LARGEST:
                self.minors = row[7] + 1
            starting += (row[4], row[5]) > stretch.since
        length = self.position(stretch.until) - self.position(stretch.since) + 1
        self.width = min(GROWTH * max(length, self.width), ROWS_AHEAD * length // starting) + 2

    def as_item(self) -> Item:
        """What is stored on disk."""
        names = ("version", "revision", "mode", "is_immutable", "validator", "etag", "checked_at")
        return {name: getattr(self, name) for name in names}


class Online:
    """The source that asks a service. It can be used by several threads."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._cache = Cache(transport.config.cache)
        self._max_age = transport.config.max_age
        self._tags: dict[tuple[str, AsOf | None], _Tag] = {}
        self._settings: dict[str, Any] = {}
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the file of the cache."""
        self._cache.close()

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
        query = [("light", "1"), *past([as_of])]
        return cast(Item, self.transport.get(f"globalTag/{segment(name)}", query, about=_about(name, as_of)).json())

    def find(self, name: str, as_of: AsOf | None, moment: Moment) -> Found:
        """The rows at a moment: without a request if they are known and need not be validated."""
        tag = self._tags.get((name, as_of))
        if tag is not None and self._is_current(tag) and (stretch := tag.stretches.at(moment)):
            return Found(tag.revision, stretch.rows_at(moment))
        with self._lock:
            found = self._known(name, as_of, moment)
            if found is None:
                with self._cache.locked(self._key(name, as_of)):
                    # Another process may have asked meanwhile.
                    found = self._known(name, as_of, moment) or self._ask(name, as_of, moment)
            return found

    def prefetch(self, name: str, as_of: AsOf | None, since: Moment | None, until: Moment | None) -> None:
        """Read all that is valid in a window."""
        with self._lock:
            start = since or FIRST
            for _ in range(3):
                known = self._known(name, as_of, start)
                tag = self._tags[name, as_of] if known else self._lookup(name, as_of, start)
                end = AFTER_ALL if until is None else exclusive_end(until, tag.mode)
                stretch = tag.stretches.at(start)
                if (stretch and stretch.until >= end) or self._read(name, as_of, tag, start, end, limit=None):
                    return
                # The tag has changed.
                self._lookup(name, as_of, start)
        raise UnavailableError(
            f"The tag changes while it is read ({self.transport.config.server}, {_about(name, as_of)})"
        )

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
        query += [("since", _text(since))] if since else []
        query += [("until", _text(until))] if until else []
        about = ", ".join(map(_about, names, states))
        return cast(list[Item], self.transport.get("payload-iovs/range", query, about=about, is_slow=True).json())

    def export(self, name: str, query: Query, path: Path, about: str, progress: Any = None) -> int:
        """Write an export to a file, and return the number of rows. The file is complete or does not exist."""
        temporary = path.with_name(f".{path.name}.{time.time_ns()}.part")
        lines = 0
        try:
            with (
                self.transport.stream(f"global-tags/{segment(name)}/export", query, about=about) as response,
                temporary.open("xb") as file,
            ):
                for piece in response.stream(1 << 16):
                    file.write(piece)
                    lines += piece.count(b"\n")
                    if progress is not None:
                        progress(len(piece))
            temporary.replace(path)
        except HTTPError as error:
            raise UnavailableError(
                f"The export was interrupted: {error} ({self.transport.config.server}, {about})"
            ) from None
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror} ({about})") from None
        finally:
            temporary.unlink(missing_ok=True)
        return lines - (("format", "csv") in query)

    def _key(self, name: str, as_of: AsOf | None) -> str:
        return "\n".join((self.transport.config.server, name, *(as_of or ())))

    def _is_current(self, tag: _Tag) -> bool:
        # A client sees its own writes.
        is_seen = tag.checked > self.transport.written
        is_young = self._max_age is None or time.monotonic() - tag.checked < self._max_age
        return tag.is_immutable or (is_seen and is_young)

    def _known(self, name: str, as_of: AsOf | None, moment: Moment) -> Found | None:
        """The rows at a moment that is known in memory or on disk, after validation if that is necessary."""
        key = self._key(name, as_of)
        tag = self._tags.get((name, as_of))
        is_current = tag is not None and self._is_current(tag)
        if tag is None and (stored := self._cache.tag(key)):
            age = time.time() - stored["checked_at"]
            tag = _Tag(**stored | {"validator": Moment(*stored["validator"])}, checked=time.monotonic() - age)
            # The default is to ask once in each process.
            is_current = tag.is_immutable or (self._max_age is not None and age >= 0 and self._is_current(tag))
        if tag is None:
            return None
        stretch = tag.stretches.at(moment)
        if stretch is None:
            if (stretch := self._cache.stretch(key, tag.version, moment)) is None:
                return None
            tag.stretches.add(stretch)
        if is_current:
            self._remember(name, as_of, tag)
        else:
            tag = self._validate(name, as_of, tag)
            stretch = tag.stretches.at(moment)
        return Found(tag.revision, stretch.rows_at(moment)) if stretch else None

    def _validate(self, name: str, as_of: AsOf | None, tag: _Tag) -> _Tag:
        """The present version of a tag: this one, or a new one."""
        times = time.monotonic(), time.time()
        response = self._request(name, as_of, tag.validator, tag.etag)
        if response.status != 304:
            return self._accept(name, as_of, tag.validator, response, times)
        tag.checked, tag.checked_at = times
        self._remember(name, as_of, tag)
        if self._max_age:
            self._cache.store(self._key(name, as_of), tag.as_item())
        return tag

    def _remember(self, name: str, as_of: AsOf | None, tag: _Tag) -> None:
        self._tags[name, as_of] = tag
        self._settings.setdefault(MODE, tag.mode)

    def _ask(self, name: str, as_of: AsOf | None, moment: Moment) -> Found:
        """The rows at a moment that is not known. The stretch around it is read ahead, unless it is the first one."""
        tag = self._tags.get((name, as_of))
        if tag is not None and not tag.width and (known := tag.stretches.bounded()):
            tag.learn(known)
        if tag is None or not tag.width or not self._read(name, as_of, tag, *_ahead(tag, moment)):
            tag = self._lookup(name, as_of, moment)
        stretch = cast(Stretch, tag.stretches.at(moment))
        return Found(tag.revision, stretch.rows_at(moment))

    def _lookup(self, name: str, as_of: AsOf | None, moment: Moment) -> _Tag:
        """Ask for the rows at a moment. Returns the present version of the tag, which has them."""
        times = time.monotonic(), time.time()
        return self._accept(name, as_of, moment, self._request(name, as_of, moment), times)

    def _request(self, name: str, as_of: AsOf | None, moment: Moment, etag: str | None = None) -> Response:
        query = [("gtName", name), ("majorIOV", str(moment.major)), ("minorIOV", str(moment.minor)), ("window", "1")]
        about = f"{_about(name, as_of)}, moment {moment}"
        return self.transport.get("payloadiovs/", query + past([as_of]), etag=etag, about=about)

    def _accept(
        self, name: str, as_of: AsOf | None, moment: Moment, response: Response, times: tuple[float, float]
    ) -> _Tag:
        """Remember and store what a lookup at a moment has returned."""
        try:
            version, revision = _version(response.headers), int(response.headers["cdb-revision"])
            since, until = (as_moment(response.headers[f"cdb-valid-{name}"]) for name in ("since", "until"))
        except KeyError as missing:
            detail = f"The response has no header {missing}. Is this the address of a cdb service?"
            raise CdbError(f"{detail} ({self.transport.config.server}, {_about(name, as_of)})") from None
        tag = self._tags.get((name, as_of))
        etag, is_immutable = response.headers.get("etag", ""), "immutable" in response.headers.get("cache-control", "")
        if tag is None or tag.version != version:
            tag = _Tag(version, revision, self.setting(MODE), is_immutable, moment, etag, *times)
        tag.validator, tag.etag, (tag.checked, tag.checked_at) = moment, etag, times
        end = exclusive_end(until, tag.mode)
        if until == OPEN and moment < OPEN and tag.mode == "continuous":
            # This end may also mean that the last of all moments is not included.
            end = OPEN
        stretch = Stretch(since, end, response.json(), body=response.body)
        tag.stretches.add(stretch)
        self._remember(name, as_of, tag)
        self._cache.store(self._key(name, as_of), tag.as_item(), stretch)
        return tag

    def _read(
        self,
        name: str,
        as_of: AsOf | None,
        tag: _Tag,
        start: Moment,
        end: Moment,
        limit: int | None = BYTES_AHEAD,
    ) -> bool:
        """Read all rows of a stretch. Returns False if the tag has changed, or if they are more bytes than the limit."""
        times = time.monotonic(), time.time()
        before = tag.stretches.ending_at(start)
        if before is not None:
            base = list(before.rows_at(start).values())
        else:
            response = self._request(name, as_of, start)
            if _version(response.headers) != tag.version:
                return False
            base = response.json()
        query = [("gtName", name), *past([as_of]), ("since", _text(start))]
        if end < OPEN:
            query.append(("until", _text(wire_end(end, tag.mode))))
        headers, body = self._limited("payload-iovs/range", query, _about(name, as_of), limit)
        if body is None:
            tag.width = tag.width // GROWTH**2 + 2
            return False
        if _version(headers) != tag.version:
            return False
        changes = [
            [element["payload_type"], *(element[column] for column in COLUMNS[1:])] for element in json.loads(body)
        ]
        stretch = Stretch(start, end, base, changes)
        tag.learn(stretch)
        tag.checked, tag.checked_at = times
        tag.stretches.add(stretch)
        self._cache.store(self._key(name, as_of), tag.as_item(), stretch)
        return True

    def _limited(
        self, path: str, query: Query, about: str, limit: int | None
    ) -> tuple[Mapping[str, str], bytes | None]:
        """Headers and body of a response; None instead of a body that has more bytes than the limit."""
        if limit is None:
            whole = self.transport.get(path, query, about=about, is_slow=True)
            return whole.headers, whole.body
        pieces, size = [], 0
        with self.transport.stream(path, query, about=about) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            try:
                for piece in response.stream(1 << 18):
                    pieces.append(piece)
                    size += len(piece)
                    if size > limit:
                        return headers, None
            except HTTPError:
                # A lookup instead is repeated if necessary.
                return headers, None
        return headers, b"".join(pieces)


def _ahead(tag: _Tag, moment: Moment) -> tuple[Moment, Moment]:
    """The stretch to read ahead around a moment that is not known, between those that are known."""
    low, high = tag.stretches.gap(moment)
    tag.minors = max(tag.minors, moment.minor + 1)
    start = max(low, tag.moment_at(tag.position(moment) - tag.width // 2))
    end = min(high, tag.moment_at(tag.position(start) + tag.width))
    return max(low, min(start, tag.moment_at(tag.position(end) - tag.width))), end


def _version(headers: Mapping[str, str]) -> str:
    """The version of a tag's state. In an ETag, a digest of the request follows it."""
    return f"{headers.get('cdb-revision')} {headers.get('etag', '').removeprefix('W/').rpartition('-')[0]}"


def _about(name: str, as_of: AsOf | None) -> str:
    return f"tag {name}" + (f" ({as_of.kind} {as_of.value})" if as_of else "")


def _text(moment: Moment) -> str:
    return f"{moment.major},{moment.minor}"
