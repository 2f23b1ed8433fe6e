"""What bench and campaigns share: a data directory with an embedded server and seeded scenarios, and measuring in turns."""

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pandas
import psutil
import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812

from cdb.embedded.server import EmbeddedPostgres
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.service import ServiceError, Settings, manage
from loadtests.usage import postmaster

GOOD_TAG = 'SELECT payload_iov_count FROM "GlobalTag" WHERE name = %s AND payload_lists_count = %s'
TABLES = "SELECT to_regclass('\"GlobalTag\"') IS NOT NULL"
Point = TypeVar("Point")
CONNECT_SECONDS = 5


@dataclass(frozen=True)
class Database:
    """A database of the embedded server; `url` is its libpq URL."""

    url: str

    @contextlib.contextmanager
    def connect(self, *, autocommit: bool = True) -> Iterator[Connection]:
        """Connect inside the block; without `autocommit`, uncommitted changes are rolled back at its end."""
        with contextlib.closing(psycopg2.connect(self.url, connect_timeout=CONNECT_SECONDS)) as connection:
            connection.autocommit = autocommit
            yield connection

    def run(self, statement: str, parameters: Any = None) -> None:
        """Execute SQL with autocommit; several statements in one call share a transaction."""
        with self.connect() as connection:
            connection.cursor().execute(statement, parameters)

    def value(self, statement: str, parameters: Any = None) -> Any:
        """Execute a query and return the first column of its first row; None without rows."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            row = cursor.fetchone()
            return row[0] if row else None

    def responds(self) -> bool:
        """Whether it executes a statement on a new connection."""
        with contextlib.suppress(psycopg2.Error):
            return self.value("SELECT 1") == 1
        return False

    @contextlib.contextmanager
    def sibling(self, name: str) -> Iterator["Database"]:
        """An empty database `name` on the same server inside the block; an existing one is dropped first."""
        drop = f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'
        self.run(drop)
        try:
            self.run(f'CREATE DATABASE "{name}"')
            yield Database(re.sub(r"@/\w+\?", f"@/{name}?", self.url))
        finally:
            self.run(drop)


@dataclass
class Harness:
    """The environment of one run of bench or of a campaign, in a data directory."""

    data: Path
    _server: EmbeddedPostgres = field(init=False)

    def __post_init__(self) -> None:
        self._server = EmbeddedPostgres(self.data / "postgres")

    @contextlib.contextmanager
    def running_database(self) -> Iterator[None]:
        """Keep the embedded server running inside the block, also between two services."""
        self.data.mkdir(parents=True, exist_ok=True)
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

    def seed(self, *scenarios: str) -> None:
        """Create the global tags of scenarios (random layout, seed 1), unless they are there.

        A tag with the expected counts is used as it is, because seeding it again would give the same rows. Raises
        `ServiceError` if a name is unknown or a tag cannot be written.
        """
        if unknown := set(scenarios) - set(SCENARIOS):
            raise ServiceError(f"there is no scenario {', '.join(unknown)}: the scenarios are {', '.join(SCENARIOS)}")
        if not self.database.value(TABLES):
            manage(self.settings, "migrate", "--verbosity", "0")
        for name in dict.fromkeys(scenarios):
            scenario = SCENARIOS[name]
            if self.database.value(GOOD_TAG, (name, scenario.payload_types)) != scenario.iovs:
                self.say(f"seeding {name}: {scenario.iovs:,} IOVs")
                manage(self.settings, "seed_scenario", name, "--layout", "random", "--seed", "1", "--reset", "--yes")

    def measure(self, contenders: Mapping[str, Callable[[], dict[str, Any]]], rounds: int) -> pandas.DataFrame:
        """The figures of all contenders, measured in turns: a row for each round, with its `what`."""
        rows = []
        for number, what in in_turns(list(contenders), rounds):
            self.say(f"round {number} of {rounds}: {what}")
            rows.append({"what": what, "round": number, **contenders[what]()})
        return pandas.DataFrame(rows)


def in_turns(points: Sequence[Point], repetitions: int) -> Iterator[tuple[int, Point]]:
    """All points, once per repetition, as (number of the repetition from 1, point).

    Every second repetition has the reverse order, so that a machine that becomes slower favours no point.
    """
    for number in range(1, repetitions + 1):
        for point in points if number % 2 else reversed(points):
            yield number, point


def ratios(rounds: pandas.DataFrame, figure: str, base: str | Mapping[str, str]) -> pandas.DataFrame:
    """The median, minimum and maximum of a figure by contender, and its ratio to `base`: a contender, or one for each."""
    found = rounds.groupby("what", sort=False)[figure].agg(["median", "min", "max"])
    bases = [base if isinstance(base, str) else base[what] for what in found.index]
    found[f"÷ {base}" if isinstance(base, str) else "ratio"] = found["median"] / found.loc[bases, "median"].to_numpy()
    return found.reset_index()
