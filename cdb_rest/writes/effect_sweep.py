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
from cdb_rest.analysis.contents import SETTINGS, ListVersion, interval_between, window_rows
from cdb_rest.analysis.difference import NO_LISTS
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.rules.moment import AFTER_ALL, Interval, Mode, Moment
from cdb_rest.writes.effects import SHOWN, Effects, EffectWarning, Kind, NetDifference, TypeEffects

ROWS = named_sql.load("effect_rows").replace(
    "{rows}",
    window_rows("%(list)s", "%(version)s", "major_iov_end, minor_iov_end, payload_url, checksum, size, extra"),
)
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
    """An IOV where it is valid, as combined moments; `number` is that of the row of the file with this start."""

    since: Decimal
    until: Decimal
    payload: tuple[str, ...]
    number: int | None

    @property
    def url(self) -> str:
        """The payload URL."""
        return self.payload[0]


@dataclass(frozen=True)
class Affected:
    """A payload list that a write has changed: its rows before and after, and where all that was changed starts.

    `last` is a moment after which nothing was changed, and `added` and `unchanged` are numbers of rows of the file.
    """

    payload_type: str
    before: ListVersion | None
    after: ListVersion | None
    window: Interval
    added: int = 0
    unchanged: int = 0


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
        self._lengths: list[Decimal] = []
        self._spellings: dict[str, dict[str, int | None]] = defaultdict(dict)

    def run(self) -> None:
        """Make the pass."""
        with connection.cursor() as cursor:
            cursor.execute(SETTINGS)
        after, start = self._affected.after or NO_LISTS[0], self._affected.window.start
        [(first,)] = fetch_all(START, {"list": after.id, "since": start.combined, "nearby": NEARBY})
        with (
            closing(self._parts(self._affected.before, first, numbered=False)) as old,
            closing(self._parts(after, first, numbered=self._has_file)) as new,
        ):
            self._compare(old, self._measured(new))

    def _parts(self, rows: ListVersion | None, first: Decimal, *, numbered: bool) -> Generator[Part]:
        """The parts of a list where a row is valid, from the one at `first` on, up to `NEARBY` rows after the window."""
        rows = rows or NO_LISTS[0]
        parameters: dict[str, Any] = {
            "list": rows.id,
            "version": rows.rows_version,
            "since": first,
            "until": AFTER_ALL.combined,
            "inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE,
        }
        numbers = self._numbers() if numbered else iter(())
        line = next(numbers, None)
        beyond, end = 0, self._affected.window.end.combined
        with connection.chunked_cursor() as cursor:
            cursor.execute(ROWS, parameters)
            while chunk := cursor.fetchmany(2000):
                for since, until, *payload in chunk:
                    beyond += since > end
                    if beyond > NEARBY:
                        return
                    while line is not None and line[0] < since:
                        line = next(numbers, None)
                    number = line[1] if line is not None and line[0] == since else None
                    if len(self._spellings) < COMPARED:
                        self._spellings[_spelled(payload[0])].setdefault(payload[0], None)
                    if since < until:
                        yield Part(since, until, tuple(payload), number)

    def _numbers(self) -> Iterator[tuple[Decimal, int]]:
        """The starts of the rows of the file, and their numbers; of rows with the same start, the last one counts."""
        with connection.chunked_cursor() as cursor:
            cursor.execute(NUMBERS, {"payload_type": self._affected.payload_type})
            while chunk := cursor.fetchmany(2000):
                for number, major, minor in chunk:
                    yield Moment(major, minor).combined, number

    def _measured(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The same parts. Notes the lengths of those with an end."""
        for part in parts:
            if part.until < AFTER_ALL.combined and len(self._lengths) < COMPARED:
                self._lengths.append(part.until - part.since)
            yield part

    def _compare(self, before: Iterator[Part], after: Iterator[Part]) -> None:
        kept: list[tuple[Decimal, Decimal]] = []
        covering: Part | None = None
        # The start of a gap after the write, and whether it is a new one.
        gap: Decimal | None = None
        is_new_gap = False
        last: Part | None = None
        previous: Part | None = None
        spans = _Spans(self._found)
        for since, until, old, is_inside, new, closes in _steps(before, after):
            if new is None:
                if last is not None:
                    gap = since if gap is None else gap
                    is_new_gap |= old is not None or not is_inside
            else:
                if gap is not None and is_new_gap:
                    self._gaps.append((interval_between(gap, since), new.number or (last and last.number)))
                if new is not last:
                    previous = last
                gap, is_new_gap, last = None, False, new
            if old is not None:
                if new is not None and new.payload == old.payload:
                    if kept and kept[-1][1] == since:
                        kept[-1] = (kept[-1][0], until)
                    else:
                        kept.append((since, until))
                elif covering is None:
                    covering = new
                if closes:
                    self._classify(old, kept, covering)
                    kept, covering = [], None
            if (old and old.payload) != (new and new.payload):
                spans.add(since, until, old, new)
                if new is not None and new.number is not None:
                    self._note(new, previous)
        spans.end()
        self._found.gaps = len(self._gaps)

    def _note(self, new: Part, previous: Part | None) -> None:
        """Note a row of the file that changes something; it may be the last one again."""
        if len(self._changed) < COMPARED and not (self._changed and self._changed[-1][0] is new):
            self._changed.append((new, previous))
            self._spellings[_spelled(new.url)][new.url] = new.number

    def _classify(self, old: Part, kept: list[tuple[Decimal, Decimal]], covering: Part | None) -> None:
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
            shown = ", ".join(f"{old.url} {interval_between(old.since, old.until)}" for old, _ in self._removed[:3])
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
            shown = f"{Moment.from_combined(part.since)} follows {Moment.from_combined(last.since)}"
            text = f"Starts more than {FAR} times beyond the one before: {len(far):,} ({shown})."
            yield EffectWarning(Kind.FAR_START, name, text, _first(part.number for part, _ in far), len(far))
        if long := [*self._long()]:
            shown = str(interval_between(long[0].since, long[0].until))
            text = f"Intervals longer than {LONG} times the median of the list: {len(long):,} ({shown})."
            yield EffectWarning(Kind.LONG, name, text, _first(part.number for part in long), len(long))
        yield from self._checksum_warnings()
        for urls in self._spellings.values():
            numbers = _first(urls.values())
            if len(urls) > 1 and numbers:
                text = f"Payload URLs that differ only in case or in spaces at the ends: {', '.join(map(repr, urls))}."
                yield EffectWarning(Kind.OTHER_CASE, name, text, numbers, len(urls))

    def _long(self) -> Iterator[Part]:
        """The changed rows that are much longer than the median. Two intervals have no median to speak of."""
        if len(self._lengths) < 3 or not self._changed:
            return
        usual = median(self._lengths)
        first, last = self._changed[0][0], self._changed[-1][0]
        # Intervals within a major number cannot be compared with those across several ones.
        if int(first.since) != int(last.until):
            usual = max(usual, Decimal(1))
        for part, _ in self._changed:
            if part.until < AFTER_ALL.combined and part.until - part.since > LONG * usual:
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
        self._open: tuple[Decimal, Decimal, Part | None, Part | None] | None = None
        self._all: tuple[Decimal, Decimal] | None = None

    def add(self, since: Decimal, until: Decimal, old: Part | None, new: Part | None) -> None:
        """Add a step in which the payloads differ. The steps are ordered."""
        if self._open is not None:
            first, end, *parts = self._open
            if end == since and [part and part.payload for part in parts] == [old and old.payload, new and new.payload]:
                self._open = (first, until, old, new)
                return
        self._close()
        self._open = (since, until, old, new)

    def end(self) -> None:
        """Note the last interval, and the one from the first start to the last end."""
        self._close()
        if self._all is not None:
            self._found.interval = interval_between(*self._all)

    def _close(self) -> None:
        if self._open is None:
            return
        since, until, old, new = self._open
        self._open, found = None, self._found
        self._all = (self._all[0] if self._all else since, until)
        found.difference_count += 1
        if len(found.differences) < SHOWN:
            found.differences.append(NetDifference(interval_between(since, until), old and old.url, new and new.url))


def _steps(
    before: Iterator[Part], after: Iterator[Part]
) -> Iterator[tuple[Decimal, Decimal, Part | None, bool, Part | None, bool]]:
    """The intervals between the edges of both sides, in order: since, until, and the part of each side, None for none.

    With the part before the write follows whether other parts of that side are before and after the step; with the part after
    the write, whether the step is the last one of the part before the write.
    """
    sides = (before, after)
    heads = [next(side, None) for side in sides]
    has_begun = False
    position = Decimal(0)
    while any(heads):
        old, new = (head if head is not None and head.since <= position else None for head in heads)
        has_begun = has_begun or old is not None
        edges = (head.until if head.since <= position else head.since for head in heads if head is not None)
        until = min(edges)
        if position < until:
            yield position, until, old, has_begun and heads[0] is not None, new, old is not None and old.until == until
        position = until
        for side, head in enumerate(heads):
            if head is not None and head.until <= until:
                heads[side] = next(sides[side], None)


def _is_far(last: Decimal, since: Decimal) -> bool:
    """Whether a start is far beyond the one before. Lists with only the major number 0 are compared by the minor number."""
    if since < 1:
        return last > 0 and since > FAR * last
    return last >= 1 and int(since) > FAR * int(last)


def _first(numbers: Iterable[int | None]) -> tuple[int, ...]:
    """The first `SHOWN` numbers in order."""
    return tuple(sorted({number for number in numbers if number is not None})[:SHOWN])


def _spelled(url: str) -> str:
    """A payload URL without what may differ by mistake."""
    return url.strip().lower()
