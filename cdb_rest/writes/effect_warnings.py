"""What in the effects of a write is probably a mistake."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Moment
from cdb_rest.writes.effects import SHOWN, EffectWarning, Kind

CHECKSUM_SETTINGS = named_sql.load("import_checksum_settings")
CHECKSUMS = named_sql.load("import_checksums")
# A start, and the length of an interval, that is more than this many times as large as the others is probably a mistake.
FAR, LONG = 10, 20
# Integers are compared and subtracted several times as fast as Decimal.
SCALE = 10**19
AFTER = AFTER_ALL.major * SCALE


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


# After all parts of a list.
NO_PART = Part(2 * AFTER, 2 * AFTER, (), None)


@dataclass
class Findings:
    """What a comparison of a payload list before and after a write has found.

    - `removed`: IOVs that are valid nowhere any more, each with the number of the row of the file that covers it.
    - `gaps`: new gaps, each with the number of a row of the file beside it.
    - `changed`: rows of the file that change something, each with the part before it.
    - `lengths`: those of the parts with an end.
    - `numbers_of`: payload URLs, with the number of a row of the file that changes something.
    """

    removed: list[tuple[Part, int | None]] = field(default_factory=list)
    gaps: list[tuple[Interval, int | None]] = field(default_factory=list)
    changed: list[tuple[Part, Part | None]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    numbers_of: dict[str, int | None] = field(default_factory=dict)


def warnings_of(name: str, found: Findings) -> Iterator[EffectWarning]:
    """The warnings for a payload type. Raises `django.db.Error`."""
    if found.removed:
        shown = ", ".join(f"{old.url} {interval(old.since, old.until)}" for old, _ in found.removed[:3])
        rows = _first(number for _, number in found.removed)
        more = ", …" if len(found.removed) > 3 else ""
        text = f"Existing IOVs that will be valid nowhere: {len(found.removed):,} ({shown}{more})."
        yield EffectWarning(Kind.REMOVED, name, text, rows, len(found.removed))
    if found.gaps:
        shown = ", ".join(str(interval) for interval, _ in found.gaps[:3])
        rows = _first(number for _, number in found.gaps)
        more = ", …" if len(found.gaps) > 3 else ""
        text = f"New gaps, in which no payload is valid: {len(found.gaps):,} ({shown}{more})."
        yield EffectWarning(Kind.GAP, name, text, rows, len(found.gaps))
    if far := [(part, last) for part, last in found.changed if last is not None and _is_far(last.since, part.since)]:
        part, last = far[0]
        shown = f"{moment_of(part.since)} follows {moment_of(last.since)}"
        text = f"Starts more than {FAR} times beyond the one before: {len(far):,} ({shown})."
        yield EffectWarning(Kind.FAR_START, name, text, _first(part.number for part, _ in far), len(far))
    if long := [*_long(found)]:
        shown = str(interval(long[0].since, long[0].until))
        text = f"Intervals longer than {LONG} times the median of the list: {len(long):,} ({shown})."
        yield EffectWarning(Kind.LONG, name, text, _first(part.number for part in long), len(long))
    yield from _checksum_warnings(name, found)
    spellings: dict[str, dict[str, int | None]] = defaultdict(dict)
    for url, number in found.numbers_of.items():
        spellings[_spelled(url)][url] = number
    for urls in spellings.values():
        if len(urls) > 1 and (numbers := _first(urls.values())):
            text = f"Payload URLs that differ only in case or in spaces at the ends: {', '.join(map(repr, urls))}."
            yield EffectWarning(Kind.OTHER_CASE, name, text, numbers, len(urls))


def _long(found: Findings) -> Iterator[Part]:
    """The changed rows that are much longer than the median. Two intervals have no median to speak of."""
    if len(found.lengths) < 3 or not found.changed:
        return
    usual = median(found.lengths)
    first, last = found.changed[0][0], found.changed[-1][0]
    # Intervals within a major number cannot be compared with those across several ones.
    if first.since // SCALE != last.until // SCALE:
        usual = max(usual, SCALE)
    for part, _ in found.changed:
        if part.until < AFTER and part.until - part.since > LONG * usual:
            yield part


def _checksum_warnings(name: str, found: Findings) -> Iterator[EffectWarning]:
    numbers = [part.number for part, _ in found.changed]
    if not numbers:
        return
    with connection.cursor() as cursor:
        cursor.execute(CHECKSUM_SETTINGS)
    if rows := fetch_all(CHECKSUMS, {"payload_type": name, "numbers": numbers}):
        url, _, mine, others = rows[0]
        text = (
            f"Payload URLs that have another checksum elsewhere in the file or in a payload list of the type: {len(rows):,} "
            f"({url}: {mine}, and {', '.join(others[:3])})."
        )
        yield EffectWarning(Kind.OTHER_CHECKSUM, name, text, _first(row[1] for row in rows), len(rows))


def scaled(major: int, minor: int) -> int:
    """A moment as one number."""
    return major * SCALE + minor


def moment_of(scaled: int) -> Moment:
    """The moment for a combined value, as `Moment.from_combined`."""
    major, minor = divmod(scaled, SCALE)
    return Moment(major, minor) if minor <= OPEN else Moment(major + 1, 0)


def interval(since: int, until: int) -> Interval:
    """The interval between two moments, each as one number."""
    return Interval(moment_of(since), moment_of(until))


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
