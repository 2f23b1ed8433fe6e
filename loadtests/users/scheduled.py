"""A user that plays a schedule written by a campaign. It is not a kind of client, so the web UI does not offer it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from locust import events
from locust.argument_parser import LocustArgumentParser

from cdb_rest.scenarios.definitions import SCENARIOS, payload_type_names
from loadtests import schedule
from loadtests.recording.rows import now
from loadtests.users.base import Calls, Check, Reply
from loadtests.users.readers import Reader

# From the end of one wave to the first request of the next one.
LEAD_SECONDS = 0.1


@events.init_command_line_parser.add_listener
def add_options(parser: LocustArgumentParser) -> None:
    """Add the option for the file of the schedule."""
    parser.add_argument(
        "--schedule",
        default="",
        metavar="FILE",
        include_in_web_ui=False,
        help="Scheduled: file with the waves of requests",
    )


class Scheduled(Reader):
    """Sends one request per job at the scheduled time, each over a new connection."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._waves = schedule.read(Path(self.options.schedule))
        self._wave = self._waves[0]

    def job(self, calls: Calls) -> None:
        """Send one request to the route of the current wave."""
        path, check = {
            "lookup": self._lookup, "globalTags": self._global_tags, "gtPayloadLists": self._payload_lists,
        }[self._wave.route]()  # fmt: skip
        calls.request("GET", path, name=self._wave.name, check=check)

    def _lookup(self) -> tuple[str, Check]:
        moment = self.subject.draw()
        return self.subject.path(moment), self.subject.check(moment)

    def _global_tags(self) -> tuple[str, Check]:
        return "globalTags", self.subject.check_tag_list

    def _payload_lists(self) -> tuple[str, Check]:
        return f"gtPayloadLists/{quote(self.subject.tag)}", self._fault_of_lists

    def _fault_of_lists(self, reply: Reply) -> str | None:
        scenario = SCENARIOS.get(self.options.scenario)
        if scenario is None:
            return None if reply.json and all(isinstance(name, str) for name in reply.json.values()) else "no lists"
        expected = payload_type_names(scenario.payload_types)
        return (
            None if sorted(reply.json) == sorted(expected) else f"not the {len(expected)} payload types of the scenario"
        )

    def _moments(self) -> Iterator[float]:
        for wave in self._waves:
            self._progress.join()
            self._wave = wave
            begin = now() + LEAD_SECONDS
            for number in range(wave.count):
                yield begin + number * wave.offset
