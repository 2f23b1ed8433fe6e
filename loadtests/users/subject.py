"""What readers ask about, and what they have to be answered: the same for all users of a process."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import gevent
from gevent.lock import Semaphore

from cdb_rest.domain.moment import Mode, Moment
from cdb_rest.lookup.model import COLUMNS
from cdb_rest.scenarios.layouts import RANDOM_MOMENTS
from loadtests.content.expected import Expected
from loadtests.content.moments import drawing
from loadtests.users.base import Check, Reply
from loadtests.users.options import UNKNOWN


class Subject:
    """A tag, the moments that are asked about, and the checks of the answers."""

    def __init__(self, options: Any) -> None:
        """Of a large scenario the first time takes long; use `subject_of`, which lets other greenlets go on."""
        seeded = options.scenario != UNKNOWN
        self.tag: str = options.global_tag or options.scenario
        self._query = f"payloadiovs/?gtName={quote(self.tag)}"
        mode = Mode(options.iov_mode)
        self._expected = (
            Expected(options.scenario, options.layout, options.seed, mode, tag=self.tag) if seeded else None
        )
        layout, last_major = ("random", RANDOM_MOMENTS - 1)
        if self._expected:
            layout, last_major = options.layout, self._expected.starts.last_major
        fixed = Moment(options.major, options.minor)
        self.draw: Callable[[], Moment] = drawing(options.pattern, layout, last_major, fixed=fixed, seed=options.seed)

    def path(self, moment: Moment, *, as_objects: bool = False) -> str:
        """The lookup at a moment."""
        return f"{self._query}&majorIOV={moment.major}&minorIOV={moment.minor}{'&shape=dict' if as_objects else ''}"

    def check(self, moment: Moment, *, as_objects: bool = False) -> Check:
        """What holds an answer against what it has to be."""
        return lambda reply: self.fault(moment, reply, as_objects=as_objects)

    def fault(self, moment: Moment, reply: Reply, *, as_objects: bool = False) -> str | None:
        """What is wrong with an answer, or None; the number of its rows is noted."""
        if self._expected is None:
            return _fault_of_form(moment, reply, as_objects=as_objects)
        fault = self._expected.fault(moment, reply.body, as_objects=as_objects)
        # Each row has one bracket of its own, and no text in it has any, which is less work than parsing.
        reply.rows = (
            reply.body.count(b"{" if as_objects else b"[") - (not as_objects) if fault is None else len(reply.json)
        )
        return fault

    def named(self, reply: Reply) -> str | None:
        """What is wrong with the list of tags, or None."""
        return None if any(item["name"] == self.tag for item in reply.json) else f"no global tag {self.tag}"


def _fault_of_form(moment: Moment, reply: Reply, *, as_objects: bool) -> str | None:
    """Of real data it is known only that rows are ordered by payload type, and start no later than asked."""
    rows = [[row[column] for column in COLUMNS] for row in reply.json] if as_objects else reply.json
    names = [row[0] for row in rows]
    if names != sorted(set(names)):
        return f"at {moment}: payload types are not in order, or twice"
    for row in rows:
        if (row[4], row[5]) > moment:
            return f"at {moment}: {row} starts later"
        if not isinstance(row[3], int) or not isinstance(row[7], int):
            return f"at {moment}: {row} is not of the expected form"
    return None


_subjects: dict[tuple[Any, ...], Subject] = {}
_making = Semaphore()


def subject_of(options: Any) -> Subject:
    """The subject of these options, made only once, in a thread, so that greenlets go on meanwhile."""
    key = tuple(
        getattr(options, name)
        for name in ("scenario", "layout", "seed", "global_tag", "iov_mode", "pattern", "major", "minor")
    )
    with _making:
        if key not in _subjects:
            _subjects.clear()
            _subjects[key] = gevent.get_hub().threadpool.apply(Subject, (options,))
        return _subjects[key]
