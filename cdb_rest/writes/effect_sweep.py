"""The effects of a write, from the rows of payload lists before and after it.

Validity is effective: an IOV is valid from its start to the earlier one of its end and the next start in its list.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.analysis.contents import SETTINGS, ListVersion, window_rows
from cdb_rest.analysis.difference import NO_LISTS
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode
from cdb_rest.writes.effect_warnings import AFTER, NO_PART, SCALE, Findings, Part, interval, scaled, warnings_of
from cdb_rest.writes.effects import Effects, TypeEffects

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
# Rows before and after those that a write may change, with which they are compared.
NEARBY = 1000
# Rows of a payload type whose lengths and spellings are compared; limits the memory.
COMPARED = 100_000


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
            effects.warnings += warnings_of(item.payload_type, sweep.findings)
    effects.warnings.sort(key=lambda warning: (not warning.needs_confirmation, warning.payload_type.encode()))
    return effects


class _Sweep:
    """The comparison of a payload list before and after a write, in one pass over both. Fills a `TypeEffects`."""

    def __init__(self, affected: Affected, found: TypeEffects, *, has_file: bool) -> None:
        self._affected, self._found, self._has_file = affected, found, has_file
        self.findings = Findings()

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
        beyond, last = 0, scaled(*self._affected.window.end)
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
                    until = scaled(major_end, minor_end) + is_discrete
                    if minor_end == OPEN and (is_discrete or major_end == OPEN):
                        until = (major_end + 1) * SCALE
                    beyond += since > last
                    if beyond > NEARBY:
                        return
                    while line is not None and line[0] < since:
                        line = next(numbers, None)
                    number = line[1] if line is not None and line[0] == since else in_file
                    if len(self.findings.numbers_of) < COMPARED:
                        self.findings.numbers_of.setdefault(payload[0], None)
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
        # Where the last difference ends, its payloads, and where the first one starts.
        end, differing, first = -1, None, None
        for since, until, old, is_inside, new, closes in _steps(before, after):
            if new is None:
                if last is not None:
                    gap = since if gap is None else gap
                    is_new_gap |= old is not None or not is_inside
            elif new is not last:
                if gap is not None and is_new_gap:
                    self.findings.gaps.append((interval(gap, since), new.number or (last and last.number)))
                gap, is_new_gap, last, previous = None, False, new, last
                if new.until < AFTER and len(self.findings.lengths) < COMPARED:
                    self.findings.lengths.append(new.until - new.since)
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
                payloads = (old and old.payload, new and new.payload)
                first = since if first is None else first
                self._found.difference_count += end != since or differing != payloads
                end, differing = until, payloads
                if new is not None and new.number is not None:
                    self._note(new, previous)
        if first is not None:
            self._found.interval = interval(first, end)
        self._found.gaps = len(self.findings.gaps)

    def _note(self, new: Part, previous: Part | None) -> None:
        """Note a row of the file that changes something; it may be the last one again."""
        if len(self.findings.changed) < COMPARED and not (
            self.findings.changed and self.findings.changed[-1][0] is new
        ):
            self.findings.changed.append((new, previous))
            self.findings.numbers_of[new.url] = new.number

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
            self.findings.removed.append((old, covering and covering.number))


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
