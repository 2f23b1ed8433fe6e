"""The effects of a write, from the rows of payload lists before and after it.

Validity is effective: an IOV is valid from its start to the earlier one of its end and the next start in its list.
"""

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.analysis.contents import SETTINGS, ListVersion, window_rows
from cdb_rest.analysis.difference import NO_LISTS
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
from cdb_rest.writes.effects import SHOWN, Effects, EffectWarning, Kind, NetDifference, TypeEffects

ROWS = named_sql.load("effect_rows").replace(
    "{rows}",
    window_rows(
        "%(list)s",
        "%(version)s",
        "major_iov, minor_iov, major_iov_end, minor_iov_end, payload_url, checksum, size, extra",
    ),
)
FILLED = named_sql.load("import_filled")
START = named_sql.load("effect_start")
NUMBERS = named_sql.load("import_numbers")
CHECKSUM_SETTINGS = named_sql.load("import_checksum_settings")
CHECKSUMS = named_sql.load("import_checksums")
# A start, and the length of an interval, that is more than this many times as large as the others is probably a mistake.
FAR, LONG = 10, 20
# Rows before and after those that a write may change, with which they are compared.
NEARBY = 1000
# Rows of a payload type whose lengths and spellings are compared; limits the memory.
COMPARED = 100_000


class Part(NamedTuple):
    """An IOV where it is valid: combined moments times `SCALE`. `number` is that of the row of the file with this start."""

    since: int
    until: int
    payload: tuple[Any, ...]
    number: int | None

    @property
    def url(self) -> str:
        """The payload URL."""
        url: str = self.payload[0]
        return url


# Integers are compared and subtracted several times as fast as Decimal.
SCALE = 10**19
AFTER = AFTER_ALL.major * SCALE
# After all parts of a list.
NO_PART = Part(2 * AFTER, 2 * AFTER, (), None)


@dataclass(frozen=True)
class Affected:
    """A payload list that a write has changed: its rows before and after, and where all that was changed starts.

    After the end of `window`, nothing was changed. `added` and `unchanged` are numbers of rows of the file. A list that
    `is_filled` had no rows, and now has those of the file.
    """

    payload_type: str
    before: ListVersion | None
    after: ListVersion | None
    window: Interval
    added: int = 0
    unchanged: int = 0
    is_filled: bool = False


def read_effects(affected: Iterable[Affected], *, has_file: bool) -> Effects:
    """What a write has changed, in the transaction of the write. With a file, it must still be in the temporary table.

    Raises `django.db.Error`.
    """
    effects = Effects()
    for item in affected:
        found = TypeEffects(item.payload_type, item.added, item.unchanged)
        effects.types.append(found)
        if item.before != item.after:
            sweep = _Sweep(item, found, has_file=has_file)
            sweep.run()
            effects.warnings += sweep.warnings()
    effects.warnings.sort(key=lambda warning: (not warning.needs_confirmation, warning.payload_type.encode()))
    return effects


class _Sweep:
    """The comparison of a payload list before and after a write, in one pass over both. Fills a `TypeEffects`."""

    def __init__(self, affected: Affected, found: TypeEffects, *, has_file: bool) -> None:
        self._affected, self._found, self._has_file = affected, found, has_file
        self._removed: list[tuple[Part, int | None]] = []
        self._gaps: list[tuple[Interval, int | None]] = []
        # Rows of the file that change something, each with the part before it.
        self._changed: list[tuple[Part, Part | None]] = []
        self._lengths: list[int] = []
        # Payload URLs, with the number of a row of the file that changes something.
        self._numbers_of: dict[str, int | None] = {}

    def run(self) -> None:
        """Make the pass."""
        with connection.cursor() as cursor:
            cursor.execute(SETTINGS)
        affected = self._affected
        after, start = affected.after or NO_LISTS[0], affected.window.start
        [(first,)] = fetch_all(START, {"list": after.id, "since": start.combined, "nearby": NEARBY})
        numbered = self._has_file and not affected.is_filled
        with (
            closing(self._parts(ROWS, affected.before, first, numbered=False)) as old,
            closing(self._parts(FILLED if affected.is_filled else ROWS, after, first, numbered=numbered)) as new,
        ):
            self._compare(old, new)

    def _parts(self, statement: str, rows: ListVersion | None, first: Decimal, *, numbered: bool) -> Generator[Part]:
        """The parts of a list where a row is valid, from the one at `first` on, up to `NEARBY` rows after the window."""
        rows = rows or NO_LISTS[0]
        parameters: dict[str, Any] = {
            "payload_type": self._affected.payload_type,
            "list": rows.id,
            "version": rows.rows_version,
            "since": first,
            "until": AFTER_ALL.combined,
        }
        is_discrete = Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE
        numbers = self._numbers() if numbered else iter(())
        line = next(numbers, None)
        beyond, last = 0, _scaled(*self._affected.window.end)
        since = until = 0
        payload: tuple[Any, ...] = ()
        number = None
        with connection.chunked_cursor() as cursor:
            cursor.execute(statement, parameters)
            while chunk := cursor.fetchmany(2000):
                for major, minor, major_end, minor_end, *following, in_file in chunk:
                    start = major * SCALE + minor
                    if since < until:
                        yield Part(since, min(until, start), payload, number)
                    since, payload = start, tuple(following)
                    until = _scaled(major_end, minor_end) + is_discrete
                    if minor_end == OPEN and (is_discrete or major_end == OPEN):
                        until = (major_end + 1) * SCALE
                    beyond += since > last
                    if beyond > NEARBY:
                        return
                    while line is not None and line[0] < since:
                        line = next(numbers, None)
                    number = line[1] if line is not None and line[0] == since else in_file
                    if len(self._numbers_of) < COMPARED:
                        self._numbers_of.setdefault(payload[0], None)
        if since < until:
            yield Part(since, until, payload, number)

    def _numbers(self) -> Iterator[tuple[int, int]]:
        """The starts of the rows of the file, and their numbers; of rows with the same start, the last one counts."""
        with connection.chunked_cursor() as cursor:
            cursor.execute(NUMBERS, {"payload_type": self._affected.payload_type})
            while chunk := cursor.fetchmany(2000):
                for number, major, minor in chunk:
                    yield major * SCALE + minor, number

    def _compare(self, before: Iterator[Part], after: Iterator[Part]) -> None:
        kept: list[tuple[int, int]] = []
        covering: Part | None = None
        # The start of a gap after the write, and whether it is a new one.
        gap: int | None = None
        is_new_gap = False
        last: Part | None = None
        previous: Part | None = None
        spans = _Spans(self._found)
        for since, until, old, is_inside, new, closes in _steps(before, after):
            if new is None:
                if last is not None:
                    gap = since if gap is None else gap
                    is_new_gap |= old is not None or not is_inside
            elif new is not last:
                if gap is not None and is_new_gap:
                    self._gaps.append((_interval(gap, since), new.number or (last and last.number)))
                gap, is_new_gap, last, previous = None, False, new, last
                if new.until < AFTER and len(self._lengths) < COMPARED:
                    self._lengths.append(new.until - new.since)
            is_same = (old and old.payload) == (new and new.payload)
            if old is not None:
                if is_same:
                    if kept and kept[-1][1] == since:
                        kept[-1] = (kept[-1][0], until)
                    else:
                        kept.append((since, until))
                elif covering is None:
                    covering = new
                if closes:
                    self._classify(old, kept, covering)
                    kept, covering = [], None
            if not is_same:
                spans.add(since, until, old, new)
                if new is not None and new.number is not None:
                    self._note(new, previous)
        spans.end()
        self._found.gaps = len(self._gaps)

    def _note(self, new: Part, previous: Part | None) -> None:
        """Note a row of the file that changes something; it may be the last one again."""
        if len(self._changed) < COMPARED and not (self._changed and self._changed[-1][0] is new):
            self._changed.append((new, previous))
            self._numbers_of[new.url] = new.number

    def _classify(self, old: Part, kept: list[tuple[int, int]], covering: Part | None) -> None:
        found = self._found
        if kept == [(old.since, old.until)]:
            return
        if len(kept) > 1:
            found.split += 1
        elif kept:
            is_shortened = kept[0][0] == old.since
            found.shortened += is_shortened
            found.starts_later += not is_shortened
        elif covering is not None and covering.number is not None and covering.since == old.since:
            found.replaced += 1
        else:
            found.removed += 1
            self._removed.append((old, covering and covering.number))

    def warnings(self) -> Iterator[EffectWarning]:
        """The warnings, after the pass."""
        name = self._affected.payload_type
        if self._removed:
            shown = ", ".join(f"{old.url} {_interval(old.since, old.until)}" for old, _ in self._removed[:3])
            rows = _first(number for _, number in self._removed)
            more = ", …" if len(self._removed) > 3 else ""
            text = f"Existing IOVs that will be valid nowhere: {len(self._removed):,} ({shown}{more})."
            yield EffectWarning(Kind.REMOVED, name, text, rows, len(self._removed))
        if self._gaps:
            shown = ", ".join(str(interval) for interval, _ in self._gaps[:3])
            rows = _first(number for _, number in self._gaps)
            more = ", …" if len(self._gaps) > 3 else ""
            text = f"New gaps, in which no payload is valid: {len(self._gaps):,} ({shown}{more})."
            yield EffectWarning(Kind.GAP, name, text, rows, len(self._gaps))
        if far := [
            (part, last) for part, last in self._changed if last is not None and _is_far(last.since, part.since)
        ]:
            part, last = far[0]
            shown = f"{_moment(part.since)} follows {_moment(last.since)}"
            text = f"Starts more than {FAR} times beyond the one before: {len(far):,} ({shown})."
            yield EffectWarning(Kind.FAR_START, name, text, _first(part.number for part, _ in far), len(far))
        if long := [*self._long()]:
            shown = str(_interval(long[0].since, long[0].until))
            text = f"Intervals longer than {LONG} times the median of the list: {len(long):,} ({shown})."
            yield EffectWarning(Kind.LONG, name, text, _first(part.number for part in long), len(long))
        yield from self._checksum_warnings()
        spellings: dict[str, dict[str, int | None]] = defaultdict(dict)
        for url, number in self._numbers_of.items():
            spellings[_spelled(url)][url] = number
        for urls in spellings.values():
            if len(urls) > 1 and (numbers := _first(urls.values())):
                text = f"Payload URLs that differ only in case or in spaces at the ends: {', '.join(map(repr, urls))}."
                yield EffectWarning(Kind.OTHER_CASE, name, text, numbers, len(urls))

    def _long(self) -> Iterator[Part]:
        """The changed rows that are much longer than the median. Two intervals have no median to speak of."""
        if len(self._lengths) < 3 or not self._changed:
            return
        usual = median(self._lengths)
        first, last = self._changed[0][0], self._changed[-1][0]
        # Intervals within a major number cannot be compared with those across several ones.
        if first.since // SCALE != last.until // SCALE:
            usual = max(usual, SCALE)
        for part, _ in self._changed:
            if part.until < AFTER and part.until - part.since > LONG * usual:
                yield part

    def _checksum_warnings(self) -> Iterator[EffectWarning]:
        numbers = [part.number for part, _ in self._changed]
        if not numbers:
            return
        name = self._affected.payload_type
        with connection.cursor() as cursor:
            cursor.execute(CHECKSUM_SETTINGS)
        if rows := fetch_all(CHECKSUMS, {"payload_type": name, "numbers": numbers}):
            url, _, mine, others = rows[0]
            text = (
                f"Payload URLs that have another checksum elsewhere in the file or in a payload list of the type: {len(rows):,} "
                f"({url}: {mine}, and {', '.join(others[:3])})."
            )
            yield EffectWarning(Kind.OTHER_CHECKSUM, name, text, _first(row[1] for row in rows), len(rows))


class _Spans:
    """Maximal intervals with the same payloads before and after, for a `TypeEffects`."""

    def __init__(self, found: TypeEffects) -> None:
        self._found = found
        self._since = self._until = -1
        self._parts: tuple[Part | None, Part | None] = (None, None)
        self._payloads: tuple[Any, Any] = (None, None)
        self._first: int | None = None

    def add(self, since: int, until: int, old: Part | None, new: Part | None) -> None:
        """Add a step in which the payloads differ. The steps are ordered."""
        payloads = (old and old.payload, new and new.payload)
        if self._until != since or self._payloads != payloads:
            self._close()
            self._since, self._parts, self._payloads = since, (old, new), payloads
        self._until = until

    def end(self) -> None:
        """Note the last interval, and the one from the first start to the last end."""
        self._close()
        if self._first is not None:
            self._found.interval = _interval(self._first, self._until)

    def _close(self) -> None:
        found = self._found
        if self._until < 0:
            return
        if self._first is None:
            self._first = self._since
        found.difference_count += 1
        if len(found.differences) < SHOWN:
            urls = (part and part.url for part in self._parts)
            found.differences.append(NetDifference(_interval(self._since, self._until), *urls))


def _steps(
    before: Iterator[Part], after: Iterator[Part]
) -> Iterator[tuple[int, int, Part | None, bool, Part | None, bool]]:
    """The intervals between the edges of both sides, in order: since, until, and the part of each side, None for none.

    With the part before the write follows whether other parts of that side are before and after the step; with the part after
    the write, whether the step is the last one of the part before the write.
    """
    old, new = next(before, NO_PART), next(after, NO_PART)
    has_begun = False
    position = 0
    while old is not NO_PART or new is not NO_PART:
        is_old, is_new = old.since <= position, new.since <= position
        old_edge = old.until if is_old else old.since
        new_edge = new.until if is_new else new.since
        until = min(old_edge, new_edge)
        has_begun = has_begun or is_old
        closes, is_new_end = is_old and old_edge == until, is_new and new_edge == until
        if position < until:
            is_inside = has_begun and old is not NO_PART
            yield position, until, old if is_old else None, is_inside, new if is_new else None, closes
        position = until
        if closes:
            old = next(before, NO_PART)
        if is_new_end:
            new = next(after, NO_PART)


def _scaled(major: int, minor: int) -> int:
    return major * SCALE + minor


def _moment(scaled: int) -> Moment:
    """The moment for a combined value, as `Moment.from_combined`."""
    major, minor = divmod(scaled, SCALE)
    return Moment(major, minor) if minor <= OPEN else Moment(major + 1, 0)


def _interval(since: int, until: int) -> Interval:
    return Interval(_moment(since), _moment(until))


def _is_far(last: int, since: int) -> bool:
    """Whether a start is far beyond the one before. Lists with only the major number 0 are compared by the minor number."""
    if since < SCALE:
        return last > 0 and since > FAR * last
    return last >= SCALE and since // SCALE > FAR * (last // SCALE)


def _first(numbers: Iterable[int | None]) -> tuple[int, ...]:
    """The first `SHOWN` numbers in order."""
    return tuple(sorted({number for number in numbers if number is not None})[:SHOWN])


def _spelled(url: str) -> str:
    """A payload URL without what may differ by mistake."""
    return url.strip().lower()
