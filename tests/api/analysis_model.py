"""The model of a strict lookup for tests of analyses: rows in plain Python, and what follows from them."""

import itertools
from contextlib import contextmanager

from hypothesis import HealthCheck
from hypothesis import strategies as st

from cdb_rest.rules.moment import OPEN, Interval, Mode, Moment
from tests.builders import Builder, emptied

NUMBERS = st.one_of(st.integers(0, 4), st.sampled_from([2**53 + 1, OPEN - 1, OPEN]))
MOMENTS = st.builds(Moment, NUMBERS, NUMBERS)
TYPES = ["A", "B", "b\u00e9"]
URLS = ["x", "y", "z"]
CHECKSUMS = ["", "1", "2"]
END = Moment(OPEN, OPEN)
WHOLE = (Moment(0, 0), END)
ROWS = st.lists(
    st.tuples(MOMENTS, st.one_of(MOMENTS, st.just(END)), st.sampled_from(URLS), st.sampled_from(CHECKSUMS)),
    max_size=6,
    unique_by=lambda row: row[0],
).map(lambda rows: sorted(row for row in rows if row[0] <= row[1]))
# The rows (start, end in the wire format, URL, checksum) of a tag by payload type.
TAGS = st.dictionaries(st.sampled_from(TYPES), ROWS)
STACKS = st.lists(TAGS, min_size=2, max_size=3)
WINDOWS = st.one_of(st.just(WHOLE), st.tuples(MOMENTS, MOMENTS))
# Settings of hypothesis.
LAWS = {"suppress_health_check": list(HealthCheck), "deadline": None}


def make(name, tag):
    """Make a global tag with these rows."""
    build = Builder()
    made = build.tag(name)
    for payload_type, rows in tag.items():
        payload_list = build.list(made, payload_type)
        for start, end, url, checksum in rows:
            build.iov(payload_list, start, end, url=url, checksum=checksum)


def valid(rows, moment, mode):
    """The row that a strict lookup returns, or None."""
    latest = max((row for row in rows if row[0] <= moment), default=None)
    return latest if latest and Interval.from_wire(latest[0], latest[1], mode).contains(moment) else None


def steps(lists, window, mode, value):
    """The maximal intervals of the window in which `value` of a moment is the same, with that value.

    `lists` are the lists of rows on which it depends.
    """
    edges = {window.start, window.end}
    for rows in lists:
        for row in rows:
            interval = Interval.from_wire(row[0], row[1], mode)
            edges |= {moment for moment in (interval.start, interval.end) if window.start < moment < window.end}
    edges = sorted(edges)
    found = []
    for since, until in itertools.pairwise(edges):
        new = value(since)
        if found and found[-1][1] == new:
            found[-1] = (Interval(found[-1][0].start, until), new)
        else:
            found.append((Interval(since, until), new))
    return found


def wire(interval, mode):
    return [list(moment) for moment in interval.on_wire(mode)]


def payload(row):
    return None if row is None else (row[2], row[3])


def key_of(row, by):
    if row is None:
        return None
    return row[3] if by == "checksum" and row[3] else row[2]


def first_valid(lists, moment, mode):
    """The row that a strict lookup in several tags returns, and the number of its list; or None twice."""
    found = ((row, number) for number, rows in enumerate(lists) if (row := valid(rows, moment, mode)))
    return next(found, (None, None))


def differences(a, b, window, mode, by="url"):
    """`differences_of` two single tags."""
    return differences_of([a], [b], window, mode, by)


def differences_of(a, b, window, mode, by="url"):
    """(payload type, since, until, payload in a, payload in b), in the order of a comparison of lists of tags."""
    found = []
    for name in sorted({name for tag in (*a, *b) for name in tag}, key=str.encode):
        pair = [[tag.get(name, []) for tag in side] for side in (a, b)]

        def rows(moment, pair=pair):
            return [first_valid(side, moment, mode)[0] for side in pair]

        def keys(moment, rows=rows):
            return tuple(key_of(row, by) for row in rows(moment))

        for interval, (one, other) in steps(pair[0] + pair[1], window, mode, keys):
            if one != other:
                found.append((name, *wire(interval, mode), *map(payload, rows(interval.start))))
    return found


def read_differences(api, path):
    """The response to a comparison, in the form of `differences`."""
    return [
        (
            one["payload_type"],
            one["since"],
            one["until"],
            *(one[side] and (one[side]["payload_url"], one[side]["checksum"]) for side in ("a", "b")),
        )
        for one in api.get(path).ok()
    ]


def union(intervals):
    """The same moments as disjoint intervals in order."""
    found = []
    for one in sorted(intervals, key=lambda interval: (interval.start, interval.end)):
        if found and one.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, one.end))
        else:
            found.append(one)
    return found


def rows_of(nested):
    """The rows by payload type of a nested global tag, as the API returns it."""
    return {
        one["payload_type"]: sorted(
            (
                Moment(iov["major_iov"], iov["minor_iov"]),
                Moment(iov["major_iov_end"], iov["minor_iov_end"]),
                iov["payload_url"],
                iov["checksum"],
            )
            for iov in one["payload_iov"]
        )
        for one in nested["payload_lists"]
    }


def query(window):
    """The parameters of a window in the wire format."""
    return "since={},{}&until={},{}".format(*window[0], *window[1])


MODES = st.sampled_from(Mode)


def names(tags):
    """The names of the tags, in order."""
    return [f"tag {number}" for number in range(len(tags))]


def of_tags(tags):
    """The query string that names the tags."""
    return "&".join(f"gtName={name}" for name in names(tags))


@contextmanager
def made(tags):
    """Inside the block, the database has these tags, with the names of `names`, and nothing else."""
    with emptied():
        for name, tag in zip(names(tags), tags, strict=True):
            make(name, tag)
        yield
