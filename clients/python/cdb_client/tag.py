"""`Tag`: the reads of a global tag."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from urllib3.exceptions import HTTPError

from cdb_client.errors import CdbError, InputError, MissingPayloadError, UnavailableError
from cdb_client.moments import Moment, When, as_moment, exclusive_end
from cdb_client.online import Online
from cdb_client.payload import PayloadIOV, Resolution
from cdb_client.sources import AsOf, Item, Row, label, past, window
from cdb_client.transport import pages, segment

if TYPE_CHECKING:
    from cdb_client.client import Client

# As many lookups as the service carries out in one request.
MANY = 10_000
EXPORT_TYPES = ("text/csv", "application/x-ndjson")


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
        return ", ".join(map(label, self.names, self.states))

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
        """For each payload type, the payload IOV with the latest start at or before the moment.

        The moment is given as numbers, as `run` and `lumi`, as text such as "1234,5", or as a `Moment`. If `strict`, IOVs whose
        validity is over are left out. `types` are the payload types that are wanted, by default all. Each of several tags is
        read at a revision of its own (`Resolution.revisions`), which is the present one as far as `max_age` requires.
        """
        if run is not None or lumi is not None:
            if run is None or major is not None or minor:
                raise InputError("A moment is run and lumi, or major and minor.")
            major, minor = run, lumi or 0
        moment = as_moment(major, minor)
        find = self.client.source.find
        found = [find(name, state, moment) for name, state in zip(self.names, self.states, strict=True)]
        wanted = _names(types)
        valid = Valid(self, moment, [one.rows for one in found], strict, wanted)
        if not all(name in valid for name in wanted):
            self.client.check_types(wanted)
        return Resolution(self.names, tuple(one.revision for one in found), moment, valid)

    def resolve_many(
        self, moments: Iterable[When], *, strict: bool = False, types: Iterable[str] | None = None
    ) -> list[Resolution]:
        """The results of lookups at many moments, in their order; all from one state of the database for each 10,000."""
        asked = [as_moment(moment) for moment in moments]
        wanted = _names(types)
        if not isinstance(self.client.source, Online):
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
        revisions = tuple(map(int, response.headers["cdb-revision"].split(",")))
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
        source = self.client.source
        if isinstance(source, Online):
            for name, state in zip(self.names, self.states, strict=True):
                source.prefetch(name, state, *_window(since, until))

    def info(self) -> Item:
        """The tag item: name, author, status, counts, revision, times and limits; of several tags that of the first."""
        return self.client.source.state_of(self.names[0], self.states[0])

    @property
    def revision(self) -> int:
        """The revision of the state of the tag; of several tags that of the first."""
        return int(self.info()["revision"])

    def iovs(self, *types: str, since: When = None, until: When = None) -> IOVs:
        """The payload IOVs that are valid somewhere in a window, each with the part of the window in which it is valid.

        The parts of a payload type never overlap. Without `types`, all payload types are included.
        """
        elements = self.client.source.range(self.names, self.states, *_window(since, until), types)
        return IOVs(
            PayloadIOV(
                one["payload_type"],
                one["payload_url"],
                one["checksum"],
                one["size"],
                Moment(*one["since"]),
                Moment(*one["until"]),
                one["revision"],
                self.client,
            )
            for one in elements
        )

    def coverage(self, *types: str, since: When = None, until: When = None, required: Iterable[str] = ()) -> Item:
        """The gaps of each payload type in a window, as the service's route `coverage`."""
        query = [("base", name) for name in self.names[1:]] + past(self.states) + _query(types, since, until)
        query += [("required", ",".join(names))] if (names := list(required)) else []
        return cast(Item, self._read(f"{self._path}/coverage", query))

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
        query += past(self.states, "_a") + past(there.states, "_b") + _query(types, since, until)
        query += ([("by", "checksum")] if by == "checksum" else []) + ([("summary", "1")] if summary else [])
        return self._read(f"{self._path}/diff/{segment(there.names[0])}", query)

    def changes(self) -> Iterator[Item]:
        """The entries of the change log, newest first, page by page."""
        if len(self.names) > 1 or any(self.states):
            raise InputError(f"The change log is read for one tag as a whole (got {self}).")
        return pages(self.client.transport, f"{self._path}/changes", [], "revision", about=f"tag {self}")

    def change(self, revision: int) -> Item:
        """An entry of the change log with what it removed (`before`) and added (`after`)."""
        return cast(Item, self._read(f"{self._path}/changes/{revision}", ()))

    def explain(self, major: When = None, minor: int = 0, *, types: Iterable[str] | None = None) -> list[Item]:
        """For each payload type the reason for the result of a lookup, and the change that caused it."""
        moment = as_moment(major, minor)
        query = [("gtName", name) for name in self.names] + past(self.states)
        query += [("majorIOV", str(moment.major)), ("minorIOV", str(moment.minor)), *_query(_names(types), None, None)]
        return cast(list[Item], self._read("payload-iovs/explain", query, f", moment {moment}"))

    def export(
        self,
        file: str | Path,
        format: str = "csv",
        *,
        since: When = None,
        until: When = None,
        types: Iterable[str] | None = None,
    ) -> int:
        """Write the IOVs of the tag to a file, and return the number of rows. The file is complete or does not exist."""
        if len(self.names) > 1:
            raise InputError("An export has one tag.")
        query = [("format", format), *past(self.states), *_query(_names(types), since, until)]
        path, transport, about, lines = Path(file), self.client.transport, f"tag {self}", 0
        temporary = path.with_name(f".{path.name}.{time.time_ns()}.part")
        try:
            with transport.stream(f"{self._path}/export", query, about=about) as response, temporary.open("xb") as part:
                if (kind := response.headers.get("Content-Type", "")).split(";")[0] not in EXPORT_TYPES:
                    raise CdbError(f"The response is no export but {kind!r} ({transport.config.server}, {about})")
                for piece in response.stream(1 << 16):
                    part.write(piece)
                    lines += piece.count(b"\n")
            temporary.replace(path)
        except HTTPError as error:
            server = transport.config.server
            raise UnavailableError(f"The export was interrupted: {error} ({server}, {about})") from None
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror} ({about})") from None
        finally:
            temporary.unlink(missing_ok=True)
        return lines - (format == "csv")

    @property
    def _path(self) -> str:
        return f"global-tags/{segment(self.names[0])}"

    def _read(self, path: str, query: Sequence[tuple[str, str]], about: str = "") -> Any:
        return self.client.transport.get(path, query, about=f"tag {self}{about}", is_slow=True).json()


@dataclass(slots=True, eq=False)
class Valid(Mapping[str, PayloadIOV]):
    """The payload IOVs of a lookup. Each is found when it is asked for, because most jobs need few of them."""

    _tag: Tag
    _moment: Moment
    _rows: Sequence[Mapping[str, Row]]
    _strict: bool
    _types: Sequence[str]

    def _row(self, payload_type: str) -> Row | None:
        if self._types and payload_type not in self._types:
            return None
        found = [row for rows in self._rows if (row := rows.get(payload_type))]
        if self._strict or len(found) > 1:
            mode = self._tag.client.mode
            valid = [row for row in found if exclusive_end(Moment(row[6], row[7]), mode) > self._moment]
            found = valid if self._strict else valid + found
        return found[0] if found else None

    def __getitem__(self, payload_type: str) -> PayloadIOV:
        row = self._row(payload_type)
        if row is None:
            about = f"{self._tag.client.source.name}, tag {self._tag}, moment {self._moment}"
            raise MissingPayloadError(f"No payload of type {payload_type} ({about}).")
        return PayloadIOV.from_row(row, self._tag.client)

    def __iter__(self) -> Iterator[str]:
        names = self._rows[0] if len(self._rows) == 1 else set().union(*self._rows)
        return (name for name in sorted(names) if self._row(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _window(since: When, until: When) -> tuple[Moment | None, Moment | None]:
    return (None if since is None else as_moment(since)), (None if until is None else as_moment(until))


def _query(types: Iterable[str], since: When, until: When) -> list[tuple[str, str]]:
    return [("payloadType", name) for name in types] + window(*_window(since, until))


def _names(types: Iterable[str] | None) -> list[str]:
    return [types] if isinstance(types, str) else list(types or ())
