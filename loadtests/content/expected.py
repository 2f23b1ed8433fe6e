"""The expected responses to lookups of a seeded scenario, computed without the service or its database.

This module imports neither locust nor gevent, so that tests and other programs can use it.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from cdb_rest.lookup.model import COLUMNS
from cdb_rest.rules.moment import END_OF_TIME, OPEN, Interval, Mode, Moment
from cdb_rest.scenarios.definitions import SCENARIOS, payload_type_names
from cdb_rest.scenarios.generator import REVISION, partial_checksum, payload
from loadtests.content.starts import DIRECTORY, LARGEST_MINOR, MINOR_BITS, Starts, packed, unpacked

# The format of JSON in PostgreSQL. No value in a scenario needs escaping.
_ARRAY = '["%s", "%s", "%s", %d, %d, %d, %d, %d, "%s"]'
_OBJECT = (
    '{"payload_type_name" : "%s", "payload_url" : "%s", "checksum" : "%s", "size" : %d, "major_iov" : %d, "minor_iov" : %d, '
    '"major_iov_end" : %d, "minor_iov_end" : %d, "revision" : "%s"}'
)
# Separates the common part of the description of a wrong response from its details.
IN_DETAIL = ". In detail: "
# Failures are counted together if their descriptions begin with this number of equal characters.
KIND_LENGTH = 80
# Size of the cache of responses; the longest have about 30 kB.
CACHED_RESPONSES = 256


class Expected:
    """The expected responses for a tag that `seed_scenario` wrote."""

    def __init__(
        self,
        scenario: str,
        layout: str,
        seed: int,
        mode: Mode = Mode.CONTINUOUS,
        directory: Path = DIRECTORY,
        tag: str = "",
    ) -> None:
        """Load or generate the rows; `tag` is the name of the global tag, if it differs from that of the scenario.

        Generating takes some seconds per million rows; see `Starts`. Raises `KeyError` for an unknown scenario
        or layout, and `OSError` if the file of the rows cannot be written.
        """
        command = _seeding(scenario, layout, seed, tag or scenario)
        self.mismatch = (
            f"not the rows of --scenario {scenario} --layout {layout} --seed {seed} --iov-mode {mode.value}: if global tag "
            f"{tag or scenario} was changed after seeding, seed it again with `{command}`, otherwise correct these options"
        )
        self._scenario = SCENARIOS[scenario]
        self._mode = mode
        self.starts = Starts(self._scenario, layout, seed, directory)
        types = payload_type_names(self._scenario.payload_types)
        checksums = [partial_checksum(self._scenario, payload_type, layout=layout, seed=seed) for payload_type in types]
        # Responses are sorted by the name of the payload type.
        rows = zip(types, checksums, self.starts.starts, self.starts.ends, strict=True)
        self._types = sorted(rows, key=itemgetter(0))
        self.body: Callable[[Moment, bool], bytes] = lru_cache(CACHED_RESPONSES)(self._body)

    def fault(self, moment: Moment, body: bytes, *, as_objects: bool = False) -> str | None:
        """A description of what is wrong with the response to a lookup at `moment`, or None.

        `as_objects` is for shape=dict. It begins with the assumed content of the tag and the command that
        writes it, because a wrong assumption is more common than a fault of the service. Raises `ValueError` if
        `body` is not JSON.
        """
        expected = self.body(moment, as_objects)
        if body == expected:
            return None
        found, wanted = orjson.loads(body), orjson.loads(expected)
        if found == wanted:
            return None
        return f"{self.mismatch}{IN_DETAIL}at ({moment.major}, {moment.minor}) {_difference(found, wanted)}"

    def _body(self, moment: Moment, as_objects: bool) -> bytes:
        form = _OBJECT if as_objects else _ARRAY
        requested = packed(moment)
        rows = []
        for payload_type, partial, starts, ends in self._types:
            number = bisect_right(starts, requested) - 1
            if number >= 0:
                start = starts[number]
                url, checksum, size = payload(self._scenario, payload_type, partial, number)
                # Inlined `unpacked`: the call and the tuple are too slow in a loop over 200 payload types.
                major, minor = start >> MINOR_BITS, start & LARGEST_MINOR
                end = ends[number]
                until = END_OF_TIME if end == OPEN else self._end(start, end)
                rows.append(form % (payload_type, url, checksum, size, major, minor, *until, REVISION))
        return f"[{','.join(rows)}]".encode()

    def _end(self, start: int, end: int) -> Moment:
        if self._mode is Mode.CONTINUOUS:
            return unpacked(end)
        return Interval.from_wire(unpacked(start), unpacked(end), Mode.CONTINUOUS).on_wire(self._mode)[1]


def kind_of(detail: str) -> str:
    """The part of the description of a failure that all failures of its kind have in common."""
    common, found, _ = detail.partition(IN_DETAIL)
    return common if found or len(detail) <= KIND_LENGTH else f"{detail[: KIND_LENGTH - 1]}…"


def _seeding(scenario: str, layout: str, seed: int, tag: str) -> str:
    """The command that writes the tag again."""
    option = "" if tag == scenario else f" --global-tag {tag}"
    return f"manage.py seed_scenario {scenario}{option} --layout {layout} --seed {seed} --reset"


def _difference(found: Any, wanted: list[Any]) -> str:
    """A description of the first difference between two responses that are not equal."""
    if not isinstance(found, list) or len(found) != len(wanted):
        return f"{len(wanted)} rows expected, got {len(found) if isinstance(found, list) else str(found)[:100]}"
    place = next(place for place, (one, other) in enumerate(zip(found, wanted, strict=True)) if one != other)
    one, other = (list(row.values()) if isinstance(row, dict) else row for row in (found[place], wanted[place]))
    if not isinstance(one, list) or len(one) != len(COLUMNS):
        return f"row {place} expected {other}, got {found[place]}"
    column = next((number for number in range(len(COLUMNS)) if one[number] != other[number]), 0)
    return f"row {place} ({other[0]}), {COLUMNS[column]}: expected {other[column]!r}, got {one[column]!r}"


def insert_body(tag: str, payload_type: str, number: int, since: tuple[int, int]) -> dict[str, Any]:
    """The body of `payload-iovs/insert` for the IOV with a number, valid from `since` until the next one of its list."""
    place = {"global_tag": tag, "payload_type": payload_type, "since": list(since), "until": "next"}
    # The revision is stored as text; existing clients read it as a number.
    payload = {"checksum": f"{number:032x}", "size": number, "revision": "1"}
    return place | {"payload_url": f"{payload_type}/{number}"} | payload


def row_of(body: dict[str, Any]) -> list[Any]:
    """The row of a lookup that returns an inserted IOV; its stored end is open, whatever follows it."""
    payload = [body[name] for name in ("payload_type", "payload_url", "checksum", "size")]
    return [*payload, *body["since"], *END_OF_TIME, body["revision"]]
