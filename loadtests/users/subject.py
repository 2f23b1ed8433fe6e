"""The global tag that readers request, with its moments and expected responses; shared by all users of a process."""

from collections.abc import Callable
from typing import Any

from cdb_rest.lookup.model import COLUMNS
from cdb_rest.rules.moment import Mode, Moment
from cdb_rest.scenarios.layouts import RANDOM_MOMENTS
from loadtests.client import lookup_path
from loadtests.content.expected import Expected
from loadtests.content.moments import drawing
from loadtests.users.calls import Check, Reply
from loadtests.users.options import UNKNOWN


class Subject:
    """A tag, a generator of moments, and the checks of its responses."""

    def __init__(self, options: Any) -> None:
        """Load or generate the expected rows, which takes long for a large scenario."""
        self.tag: str = options.global_tag or options.scenario
        scenario = options.scenario
        self._expected: Expected | None = None
        layout, last_major = "random", RANDOM_MOMENTS - 1
        if scenario != UNKNOWN:
            self._expected = Expected(scenario, options.layout, options.seed, Mode(options.iov_mode), tag=self.tag)
            layout, last_major = options.layout, self._expected.starts.last_major
        fixed = Moment(options.major, options.minor)
        self.draw: Callable[[], Moment] = drawing(options.pattern, layout, last_major, fixed=fixed, seed=options.seed)

    def path(self, moment: Moment, *, as_objects: bool = False) -> str:
        """The path of the lookup at a moment; `as_objects` adds shape=dict."""
        return f"{lookup_path(self.tag, moment)}{'&shape=dict' if as_objects else ''}"

    def check(self, moment: Moment, *, as_objects: bool = False) -> Check:
        """A check that compares the response of a lookup with the expected rows."""
        return lambda reply: self.fault(moment, reply, as_objects=as_objects)

    def fault(self, moment: Moment, reply: Reply, *, as_objects: bool = False) -> str | None:
        """A description of what is wrong with the response of a lookup, or None; sets `reply.rows`."""
        if self._expected is None:
            return _fault_of_form(moment, reply, as_objects=as_objects)
        fault = self._expected.fault(moment, reply.body, as_objects=as_objects)
        # Counting brackets is cheaper than parsing: each row has exactly one, and no value contains any.
        reply.rows = (
            reply.body.count(b"{" if as_objects else b"[") - (not as_objects) if fault is None else len(reply.json)
        )
        return fault


def _fault_of_form(moment: Moment, reply: Reply, *, as_objects: bool) -> str | None:
    """Check a response for unknown data: rows are sorted by payload type and do not start after the moment."""
    rows = [[row[column] for column in COLUMNS] for row in reply.json] if as_objects else reply.json
    names = [row[0] for row in rows]
    if names != sorted(set(names)):
        return f"at {moment}: payload types are not sorted, or occur twice"
    for row in rows:
        if (row[4], row[5]) > moment:
            return f"at {moment}: {row} starts later"
        if not isinstance(row[3], int) or not isinstance(row[7], int):
            return f"at {moment}: {row} is not of the expected form"
    return None
