"""The second locustfile: users that only campaigns need, with their options; the web UI does not offer them."""

import itertools
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote

from locust import events
from locust.argument_parser import LocustArgumentParser

from cdb_rest.scenarios.definitions import SCENARIOS, payload_type_names
from loadtests.client import lookup_path
from loadtests.content.blocks import Content, row_to_insert, start_of
from loadtests.recording.rows import now
from loadtests.schedule import waves
from loadtests.users.base import CheckedUser
from loadtests.users.calls import Calls, Check, Reply, lists
from loadtests.users.readers import Reader
from loadtests.users.writers import INSERT, inserted

# From the end of one wave to the first request of the next one.
LEAD_SECONDS = 0.1


@events.init_command_line_parser.add_listener
def add_options(parser: LocustArgumentParser) -> None:
    """Add the options of these users, which --help shows and the web UI does not."""
    for flag, default, text in (
        ("--numbers-from", 0, "Inserter, ReadBack: number of the first IOV"),
        ("--route", "payloadiovs/", "StudyLookup: the route of the lookup"),
        ("--routes", "", "Scheduled: routes, separated by commas"),
        ("--counts", "", "Scheduled: numbers of requests of a wave"),
        ("--offsets", "", "Scheduled: milliseconds between two requests"),
        ("--offset-scale", 1.0, "Scheduled: factor of the offsets"),
    ):
        parser.add_argument(flag, type=type(default), default=default, help=text, include_in_web_ui=False)


@cache
def _numbers(kind: type[CheckedUser], first: int) -> Iterator[int]:
    """The numbers of the IOVs of all users of a class, so that each is used once."""
    return itertools.count(first)


@cache
def _content(count: int) -> Content:
    return Content(count)


class Inserter(CheckedUser):
    """An expert's client that creates an IOV and adds it to its payload list with one request."""

    def job(self, calls: Calls) -> None:
        """Insert one IOV."""
        row = row_to_insert(self.options.global_tag, next(_numbers(Inserter, self.options.numbers_from)))
        calls.request("POST", INSERT, name="insert", json=row, check=inserted(row))


class ReadBack(CheckedUser):
    """A user that looks up the start of an inserted IOV and knows the whole expected response."""

    def job(self, calls: Calls) -> None:
        """Look up one IOV."""
        options = self.options
        moment = start_of(next(_numbers(ReadBack, options.numbers_from)))
        expected = _content(options.numbers_from + options.jobs_per_user * options.num_users).at(*moment)

        def same(reply: Reply) -> str | None:
            if reply.json == expected:
                return None
            unexpected = [row for row in reply.json if row not in expected]
            return f"at {moment} not the inserted rows: {unexpected[:1]}"

        calls.request("GET", lookup_path(options.global_tag, moment), name="lookup", check=same)


class StudyLookup(Reader):
    """The client of the load study (docs/load-tests.md): single lookups, each over a new connection.

    The route is an option, so that strategies can be measured.
    """

    def job(self, calls: Calls) -> None:
        """Send one lookup."""
        subject, moment = self.subject, self.subject.draw()
        path = lookup_path(subject.tag, moment, self.options.route)
        calls.request("GET", path, name="lookup", check=subject.check(moment))


class Scheduled(Reader):
    """Sends one request per job at the scheduled time, each over a new connection."""

    def job(self, calls: Calls) -> None:
        """Send one request to the route of the current wave."""
        subject, moment = self.subject, self.subject.draw()
        requests: dict[str, tuple[str, Check]] = {
            "lookup": (subject.path(moment), subject.check(moment)),
            "globalTags": ("globalTags", lists(subject.tag)),
            "gtPayloadLists": (f"gtPayloadLists/{quote(subject.tag)}", self._fault_of_lists),
        }
        path, check = requests[self._wave.route]
        calls.request("GET", path, name=self._wave.name, check=check)

    def _fault_of_lists(self, reply: Reply) -> str | None:
        scenario = SCENARIOS.get(self.options.scenario)
        if scenario is None:
            return None if reply.json and all(isinstance(name, str) for name in reply.json.values()) else "no lists"
        expected = payload_type_names(scenario.payload_types)
        are_same = sorted(reply.json) == sorted(expected)
        return None if are_same else f"not the {len(expected)} payload types of the scenario"

    def _moments(self) -> Iterator[float]:
        options = self.options
        for wave in waves(options.routes, options.counts, options.offsets):
            self._progress.join()
            self._wave = wave
            begin, offset = now() + LEAD_SECONDS, wave.offset_ms / 1000 * options.offset_scale
            yield from (begin + number * offset for number in range(wave.count))
