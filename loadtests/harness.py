"""The test harness of bench and campaigns: a data directory with an embedded server and seeded scenarios."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil

from cdb.embedded.server import EmbeddedPostgres
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.client import Client
from loadtests.content.tags import scenario_of
from loadtests.database import Database
from loadtests.service import ServiceError, Settings, checked, manage, run_command
from loadtests.usage import postmaster

GOOD_TAG = 'SELECT payload_iov_count FROM "GlobalTag" WHERE name = %s AND payload_lists_count = %s'
Point = TypeVar("Point")
TABLES = "SELECT to_regclass('\"GlobalTag\"') IS NOT NULL"


@dataclass
class Harness:
    """The harness of one run of bench or of a campaign."""

    data: Path
    _server: EmbeddedPostgres = field(init=False)

    def __post_init__(self) -> None:
        self._server = EmbeddedPostgres(self.data / "postgres")

    @contextlib.contextmanager
    def running_database(self) -> Iterator[None]:
        """Keep the embedded server running inside the block, also between two services."""
        self._server.acquire()
        try:
            yield
        finally:
            self._server.release()

    def postmaster(self) -> psutil.Process:
        """The main process of the running embedded server."""
        return postmaster(self.data / "postgres" / "data")

    @property
    def settings(self) -> Settings:
        """The settings of a service on the main database."""
        return Settings(self.data, {"DATABASE_URL": self._server.url})

    @property
    def database(self) -> Database:
        """The main database, which has the scenarios."""
        return Database(self._server.url)

    def say(self, line: str) -> None:
        """Write a line of progress with the time to stderr."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
        sys.stderr.flush()

    def seed(self, *tags: str) -> None:
        """Create the tags with these names of scenarios or sizes (`loadtests/content/tags.py`) unless they exist.

        An existing tag with the expected counts is used as it is, because seeding it again would give the same
        rows. Raises `ServiceError` if a name is unknown or a tag cannot be written.
        """
        missing = []
        for tag in dict.fromkeys(tags):
            try:
                scenario = scenario_of(tag)
            except KeyError as error:
                raise ServiceError(f"there is no scenario {tag}: the scenarios are {', '.join(SCENARIOS)}") from error
            if not self.database.value(TABLES):
                manage(self.settings, "migrate", "--verbosity", "0")
            if self.database.value(GOOD_TAG, (tag, scenario.payload_types)) != scenario.iovs:
                self.say(f"seeding {tag}: {scenario.iovs:,} IOVs")
                missing.append(tag)
        if missing:
            write_tags(self.settings, *missing)


def write_tags(settings: Settings, *tags: str) -> None:
    """Write tags by their names, and replace existing ones. Raises `ServiceError` if that fails."""
    checked(run_command(settings, "-m", "loadtests.content.tags", *tags), "writing the tags")


def clone_with_statuses(client: Client, source: str, tags: Mapping[str, str]) -> None:
    """Clone a tag for each status in `tags`, which has the names; clones of an earlier run are used as they are."""
    there = {tag["name"]: tag["status"] for tag in client.call("GET", "globalTags").json}
    for status, tag in tags.items():
        if tag not in there:
            client.call("POST", f"cloneGlobalTag/{source}/{tag}")
        # An earlier run may have been interrupted between cloning and changing the status.
        if there.get(tag, "unlocked") != status:
            client.call("PUT", f"gt_change_status/{tag}/{status}")


def in_turns(points: Sequence[Point], repetitions: int) -> Iterator[tuple[int, Point]]:
    """All points, once per repetition, as (number of the repetition from 1, point).

    Every second repetition has the reverse order, so that a machine that becomes slower favours no point.
    """
    for number in range(1, repetitions + 1):
        for point in points if number % 2 else reversed(points):
            yield number, point
