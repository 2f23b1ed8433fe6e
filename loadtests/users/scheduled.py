"""Plays a schedule that a campaign wrote. It is no kind of client, and so it is not offered in the web UI."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from locust import events
from locust.argument_parser import LocustArgumentParser

from cdb_rest.scenarios.definitions import SCENARIOS, payload_type_names
from loadtests import schedule
from loadtests.recording.clock import now
from loadtests.users.base import Calls, Check, Reply
from loadtests.users.readers import Reader

# From the end of one wave to the first request of the next one.
LEAD_SECONDS = 0.1


@events.init_command_line_parser.add_listener
def add_options(parser: LocustArgumentParser) -> None:
    """Where the schedule is."""
    parser.add_argument("--schedule", default="", metavar="FILE", include_in_web_ui=False, help="waves of requests")


class Scheduled(Reader):
    """One request for each job, at its time, each over a connection of its own."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._waves = schedule.read(Path(self.options.schedule))
        self._wave = self._waves[0]

    def job(self, calls: Calls) -> None:
        """One call."""
        path, check = getattr(self, f"ask_{self._wave.route}")()
        calls.ask("GET", path, name=self._wave.name, check=check)

    def ask_lookup(self) -> tuple[str, Check]:
        """The hot path, at moments by the pattern."""
        moment = self.subject.draw()
        return self.subject.path(moment), self.subject.check(moment)

    def ask_globalTags(self) -> tuple[str, Check]:  # noqa: N802 -- as the route is called
        """The list of all tags."""
        return "globalTags", self.subject.named

    def ask_gtPayloadLists(self) -> tuple[str, Check]:  # noqa: N802 -- as the route is called
        """Which list of the tag holds which payload type."""
        return f"gtPayloadLists/{quote(self.subject.tag)}", self._fault_of_lists

    def _fault_of_lists(self, reply: Reply) -> str | None:
        scenario = SCENARIOS.get(self.options.scenario)
        if scenario is None:
            return None if reply.json and all(isinstance(name, str) for name in reply.json.values()) else "no lists"
        expected = payload_type_names(scenario.payload_types)
        return None if sorted(reply.json) == sorted(expected) else f"other payload types than the {len(expected)} of it"

    def _moments(self) -> Iterator[float]:
        for wave in self._waves:
            self._progress.join()
            self._wave = wave
            begin = now() + LEAD_SECONDS
            for number in range(wave.count):
                yield begin + number * wave.offset
