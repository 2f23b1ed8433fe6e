"""Rows of import files and bulk requests: payloads with their intervals, which form a set in which the order has no meaning."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.moment import Interval, Moment

# The largest number of faulty lines that an error names.
FAULTS_NAMED = 50


@dataclass(frozen=True, slots=True)
class IOVRow:
    """A row of an import file. `number` is its line, or its place in a JSON array, from 1.

    `until` is the end in the wire format, None for a row that is valid up to the next start in the file or in its list. Such a
    row `is_open` if the file says so; otherwise the file has no end or "next".
    """

    number: int
    payload_type: str
    payload_url: str
    checksum: str
    size: int
    revision: str | None
    since: Moment
    until: Moment | None
    is_open: bool = False


class Member(NamedTuple):
    """A row of a set: its list, its number, its interval, and whether the row has an end of its own."""

    key: Hashable
    number: int
    interval: Interval
    has_end: bool


def faults_of_set(members: Iterable[Member], word: str) -> Iterator[tuple[int, str]]:
    """The number and the fault of each row that starts with another row of its list, or before the end of one.

    `members` are ordered by list and start. `word` is what the numbers count, for the messages, which name the other row.
    """
    before: Member | None = None
    longest: Member | None = None
    for member in members:
        start = member.interval.start
        if before is not None and before.key != member.key:
            before = longest = None
        if before is not None and before.interval.start == start:
            yield member.number, f"{word} {before.number} has the same start, {start}; keep one of them."
        elif longest is not None and longest.interval.end > start:
            yield (
                member.number,
                f"the interval {member.interval} overlaps {longest.interval} of {word} {longest.number}; end that one "
                f"at {start}, or leave its end empty.",
            )
        if member.has_end and (longest is None or longest.interval.end < member.interval.end):
            longest = member
        before = member


def refused_lines(refusals: Iterable[tuple[int, CdbError]]) -> CdbError:
    """The error of the first refused line of a file; its message and `rows` have the numbers of the first `FAULTS_NAMED` lines.

    The caller raises it. There must be at least one line.
    """
    shown = sorted(refusals, key=lambda refusal: refusal[0])[:FAULTS_NAMED]
    found = type(shown[0][1])(" ".join(f"Line {number}: {error}" for number, error in shown))
    found.rows = [{"row": number - 1, "code": error.code, "detail": str(error)} for number, error in shown]
    return found
