"""`Tag`: the reads of a global tag."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cdb_client.errors import InputError, MissingPayloadError
from cdb_client.moments import Moment, When, as_moment, exclusive_end
from cdb_client.payload import PayloadIOV, Resolution
from cdb_client.sources import AsOf, Item, Row, past

if TYPE_CHECKING:
    from cdb_client.client import Client

# As many lookups as the service carries out in one request.
MANY = 10_000


class IOVs(list[PayloadIOV]):
    """Payload IOVs, by payload type, then by start."""

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each IOV; needs the extra `pandas`."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame([iov.as_dict() for iov in self])


@dataclass(frozen=True, slots=True)
class Tag:
    """A global tag, or several that are read as one, now or in a state of the past."""

    client: "Client"
    names: tuple[str, ...]
    states: tuple[AsOf | None, ...]

    def __str__(self) -> str:
        return ", ".join(
            f"{name} ({state.kind} {state.value})" if state else name
            for name, state in zip(self.names, self.states, strict=True)
        )

    def at(self, time: str | datetime) -> "Tag":
        """The tag as it was at a time: ISO 8601 text or a datetime, in UTC if it has no time zone."""
        text = time.isoformat() if isinstance(time, datetime) else time
        return replace(self, states=(AsOf("at", text),) * len(self.names))

    def rev(self, *revisions: int | None) -> "Tag":
        """The tag as it was at a revision. Of several tags, each needs one; None is the present."""
        if len(revisions) != len(self.names):
            raise InputError(f"{len(self.names)} revisions are needed, one for each tag (got {len(revisions)}).")
        return replace(self, states=tuple(None if one is None else AsOf("rev", str(one)) for one in revisions))

    def resolve(
        self,
        major: When = None,
        minor: int = 0,
        *,
        run: int | None = None,
        lumi: int | None = None,
        strict: bool = False,
        types: Iterable[str] | None = None,
    ) -> Resolution:
        """The payload IOV of each payload type: that with the latest start at or before the moment.

        The moment is given as numbers, as `run` and `lumi`, as text such as "1234,5", or as a `Moment`. If `strict`, IOVs whose
        validity is over are left out. `types` are the payload types that are wanted. Each of several tags is read at a revision
        of its own (`Resolution.revisions`), which is the present one as far as `max_age` requires.
        """
        if run is not None or lumi is not None:
            if run is None or major is not None or minor:
                raise InputError("A moment is run and lumi, or major and minor.")
            major, minor = run, lumi or 0
        moment = as_moment(major, minor)
        source, revisions, rows = self.client.source, [], []
        for name, state in zip(self.names, self.states, strict=True):
            found = source.find(name, state, moment)
            revisions.append(found.revision)
            rows.append(found.rows)
        wanted = None if types is None else _names(types)
        # Without the mode, ends are not considered.
        mode = self.client.mode if strict or len(rows) > 1 else None
        valid = Valid(self, moment, rows, strict, wanted, mode)
        if wanted is not None and not all(name in valid for name in wanted):
            self.client.check_types(wanted)
        return Resolution(self.names, tuple(revisions), moment, valid)

    def resolve_many(
        self, moments: Iterable[When], *, strict: bool = False, types: Iterable[str] | None = None
    ) -> list[Resolution]:
        """The results of lookups at many moments, in their order; all from one state of the database for each 10,000."""
        asked = [as_moment(moment) for moment in moments]
        wanted = None if types is None else _names(types)
        if self.client.online is None:
            return [self.resolve(moment, strict=strict, types=wanted) for moment in asked]
        body: Item = {"gtName": list(self.names), "strict": strict} | ({"payloadType": wanted} if wanted else {})
        if any(self.states):
            kind = next(state.kind for state in self.states if state)
            values = [state.value if state else None for state in self.states]
            body[kind] = values[0] if kind == "at" else values
        found: list[Resolution] = []
        size = MANY // len(self.names)
        for first in range(0, len(asked), size):
            found += self._post(asked[first : first + size], body)
        return found

    def _post(self, moments: Sequence[Moment], body: Item) -> list[Resolution]:
        response = self.client.transport.post_read(
            "payload-iovs/query", body | {"moments": moments}, about=f"tag {self}, {len(moments)} moments"
        )
        revisions = _revisions(response.headers)
        contents: list[dict[str, PayloadIOV]] = []
        by_moment: dict[tuple[int, int], dict[str, PayloadIOV]] = {}
        for element in response.json():
            if "same_as" in element:
                iovs = contents[element["same_as"]]
            else:
                iovs = {row[0]: PayloadIOV.from_row(row, self.client) for row in element["rows"]}
            contents.append(iovs)
            by_moment |= dict.fromkeys(map(tuple, element["moments"]), iovs)
        return [Resolution(self.names, revisions, moment, by_moment[moment]) for moment in moments]

    def prefetch(self, since: When = None, until: When = None) -> None:
        """Read all that is valid in a window at once; moments in it need no further request."""
        start, end = _window(since, until)
        if self.client.online is None:
            return
        for name, state in zip(self.names, self.states, strict=True):
            self.client.online.prefetch(name, state, start, end)

    def info(self) -> Item:
        """The tag item: name, author, status, counts, revision, times and limits; of several tags that of the first."""
        return self.client.source.state_of(self.names[0], self.states[0])

    @property
    def revision(self) -> int:
        """The revision of the state of the tag; of several tags that of the first."""
        return int(self.info()["revision"])

    def iovs(self, *types: str, since: When = None, until: When = None) -> IOVs:
        """The payload IOVs that are valid somewhere in a window, each with the part of the window in which it is valid.

        The parts of a payload type never overlap. Without `types`, those of all payload types.
        """
        window = _window(since, until)
        elements = self.client.source.range(self.names, self.states, *window, types)
        return IOVs(
            PayloadIOV(
                element["payload_type"],
                element["payload_url"],
                element["checksum"],
                element["size"],
                Moment(*element["since"]),
                Moment(*element["until"]),
                element["revision"],
                self.client,
            )
            for element in elements
        )

    def coverage(
        self,
        *types: str,
        since: When = None,
        until: When = None,
        required: Iterable[str] = (),
    ) -> Item:
        """The gaps of each payload type in a window, as the service's route `coverage`."""
        query = [("base", name) for name in self.names[1:]] + self._past() + _query(types, since, until)
        query += [("required", ",".join(names))] if (names := list(required)) else []
        return cast(Item, self._read(f"global-tags/{_segment(self.names[0])}/coverage", query))

    def diff(
        self,
        other: "Tag | str",
        *types: str,
        since: When = None,
        until: When = None,
        by: str = "url",
        summary: bool = False,
    ) -> Any:
        """The intervals in which a strict lookup returns other payloads here (`a`) than in another tag or state (`b`).

        With `by="checksum"`, payloads with equal checksums are the same. With `summary`, only the counts.
        """
        there = self.client.tag(other) if isinstance(other, str) else other
        query = [("base_a", name) for name in self.names[1:]] + [("base_b", name) for name in there.names[1:]]
        query += self._past("_a") + there._past("_b") + _query(types, since, until)
        query += ([("by", "checksum")] if by == "checksum" else []) + ([("summary", "1")] if summary else [])
        return self._read(f"global-tags/{_segment(self.names[0])}/diff/{_segment(there.names[0])}", query)

    def changes(self, *, search: str = "", action: str = "", actor: str = "") -> Iterator[Item]:
        """The entries of the change log, newest first, page by page."""
        given = {"search": search, "action": action, "actor": actor}
        page, pages, last = 1, 1, math.inf
        while page <= pages:
            query = [
                ("page", str(page)),
                ("page_size", "200"),
                *((name, value) for name, value in given.items() if value),
            ]
            found = cast(Item, self._read(f"global-tags/{_segment(self.names[0])}/changes", query))
            for change in found["results"]:
                # A change that is stored meanwhile moves the others to later places.
                if change["revision"] < last:
                    last = change["revision"]
                    yield change
            page, pages = page + 1, found["total_pages"]

    def change(self, revision: int) -> Item:
        """An entry of the change log with what it removed (`before`) and added (`after`)."""
        return cast(Item, self._read(f"global-tags/{_segment(self.names[0])}/changes/{revision}", ()))

    def explain(self, major: When = None, minor: int = 0, *, types: Iterable[str] | None = None) -> list[Item]:
        """For each payload type the reason for the result of a lookup, and the change that caused it."""
        moment = as_moment(major, minor)
        query = [("gtName", name) for name in self.names] + self._past()
        query += [("majorIOV", str(moment.major)), ("minorIOV", str(moment.minor))]
        query += _query(() if types is None else _names(types), None, None)
        return cast(list[Item], self._read("payload-iovs/explain", query, f", moment {moment}"))

    def export(
        self,
        file: str | Path,
        format: str = "csv",
        *,
        since: When = None,
        until: When = None,
        types: Iterable[str] = (),
        progress: Any = None,
    ) -> int:
        """Write the IOVs of the tag to a file, and return the number of rows.

        The file is complete or does not exist. `progress` is called with the number of bytes that have arrived.
        """
        if len(self.names) > 1:
            raise InputError("An export has one tag.")
        query = [("format", format), *self._past(), *_query(_names(types), since, until)]
        return self.client._service.export(self.names[0], query, Path(file), str(self), progress)

    def _past(self, suffix: str = "") -> list[tuple[str, str]]:
        return past(self.states, suffix)

    def _read(self, path: str, query: Sequence[tuple[str, str]], about: str = "") -> Any:
        return self.client.transport.get(path, query, about=f"tag {self}{about}", is_slow=True).json()


class Valid(Mapping[str, PayloadIOV]):
    """The payload IOVs of a lookup. Each is found when it is asked for, because most jobs need few of them."""

    __slots__ = ("_mode", "_moment", "_rows", "_strict", "_tag", "_types")

    def __init__(
        self,
        tag: Tag,
        moment: Moment,
        rows: Sequence[Mapping[str, Row]],
        strict: bool,
        types: Sequence[str] | None,
        mode: str | None,
    ) -> None:
        self._tag, self._moment, self._rows, self._strict, self._types, self._mode = (
            tag,
            moment,
            rows,
            strict,
            types,
            mode,
        )

    def _row(self, payload_type: str) -> Row | None:
        if self._types is not None and payload_type not in self._types:
            return None
        found: Row | None = None
        for rows in self._rows:
            row = rows.get(payload_type)
            if row is not None:
                if self._mode is None or exclusive_end(Moment(row[6], row[7]), self._mode) > self._moment:
                    return row
                found = found or row
        return None if self._strict else found

    def __getitem__(self, payload_type: str) -> PayloadIOV:
        row = self._row(payload_type)
        if row is None:
            raise MissingPayloadError(f"No payload of type {payload_type} (tag {self._tag}, moment {self._moment}).")
        return PayloadIOV.from_row(row, self._tag.client)

    def __contains__(self, payload_type: object) -> bool:
        return isinstance(payload_type, str) and self._row(payload_type) is not None

    def __iter__(self) -> Iterator[str]:
        names = self._rows[0] if len(self._rows) == 1 else set().union(*self._rows)
        return (name for name in sorted(names) if self._row(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _window(since: When, until: When) -> tuple[Moment | None, Moment | None]:
    return (None if since is None else as_moment(since)), (None if until is None else as_moment(until))


def _query(types: Iterable[str], since: When, until: When) -> list[tuple[str, str]]:
    start, end = _window(since, until)
    query = [("payloadType", name) for name in types]
    for name, moment in (("since", start), ("until", end)):
        if moment is not None:
            query.append((name, f"{moment.major},{moment.minor}"))
    return query


def _names(types: Iterable[str]) -> list[str]:
    return [types] if isinstance(types, str) else list(types)


def _revisions(headers: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(int(text) for text in headers.get("cdb-revision", "0").split(","))


def _segment(name: str) -> str:
    from cdb_client.transport import segment

    return segment(name)
