"""Clones of a global tag, and what the part `sharing` of the bench measures of them, in milliseconds."""

import random
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from psycopg2.extensions import connection as Connection  # noqa: N812

from loadtests.client import Client
from loadtests.content.expected import insert_body
from loadtests.harness import Database

MOMENTS = 2**31
CHANGED_LISTS, CALLS = 3, 50
# Ranges of major numbers. IOVs of the random layout start after the first range and before the last one.
PLACES = {"random": (0, MOMENTS), "before the first IOV": (0, 1), "after the last IOV": (MOMENTS, MOMENTS + 1)}
STATEMENTS = {
    "lookup": "SELECT cdb_lookup(%(tag)s, %(major)s, 0, false, false, false)",
    "window": "SELECT cdb_window(%(tag)s, %(major)s, 0, false, false)",
    "window with rev=": "SELECT cdb_window_at(number, tag_id, %(major)s, 0, false, false)"
    ' FROM "GlobalTagChange" WHERE global_tag = %(tag)s ORDER BY revision DESC LIMIT 1',
}
Contender = Callable[[], dict[str, Any]]


class Clones:
    """A global tag and its clones."""

    def __init__(self, host: str, database: Database, tag: str) -> None:
        self._client, self.tag, self._random = Client(host), tag, random.Random(1)
        self.types: list[str] = database.value('SELECT array_agg(name ORDER BY id) FROM "PayloadType"')

    def make(self, name: str) -> float:
        """Clone the tag."""
        return self._client.call("POST", f"cloneGlobalTag/{self.tag}/{name}").ms

    def insert(self, tag: str, payload_type: str) -> float:
        """Insert an IOV that starts at a random moment."""
        number = self._random.randrange(MOMENTS)
        return self._client.call("POST", "payload-iovs/insert", insert_body(tag, payload_type, number, (number, 0))).ms

    def writes(self) -> dict[str, Contender]:
        """Making, changing, deleting and comparing clones."""

        def times(*, is_written: bool) -> dict[str, float]:
            made, written = self.make("made"), self.insert("made", self.types[0]) if is_written else 0.0
            return {"clone": made, "write": written, "delete": self._client.call("DELETE", "deleteGlobalTag/made").ms}

        self.make("same"), self.make("other")
        for payload_type in self.types[:CHANGED_LISTS]:
            self.insert("other", payload_type)
        path = "global-tags/same/diff/other"
        return {
            "clone": lambda: {"ms": times(is_written=False)["clone"]},
            "first write to a list of a clone": lambda: {"ms": times(is_written=True)["write"]},
            "delete a clone": lambda: {"ms": times(is_written=False)["delete"]},
            "summary of differences": lambda: {"ms": self._client.call("GET", f"{path}?summary=1").ms},
            "differences": lambda: {"ms": self._client.call("GET", path).ms},
        }

    def reads(self, connection: Connection, when: str) -> Iterator[tuple[str, Contender, str]]:
        """Reads of the tag and of the clone `same`, without HTTP: the name, the contender, and what it is compared with."""

        def contender(statement: str, tag: str, majors: tuple[int, int]) -> Contender:
            def run() -> dict[str, Any]:
                values = [{"tag": tag, "major": self._random.randrange(*majors)} for _ in range(CALLS)]
                begin = time.perf_counter()
                with connection.cursor() as cursor:
                    for parameters in values:
                        cursor.execute(statement, parameters)
                return {"ms": (time.perf_counter() - begin) * 1000 / CALLS}

            return run

        tags = {"base": self.tag, "clone": "same"}.items()
        for (place, majors), (title, statement), (what, tag) in product(PLACES.items(), STATEMENTS.items(), tags):
            base = f"{title.removesuffix(' with rev=')}, base, {place}{when}"
            yield f"{title}, {what}, {place}{when}", contender(statement, tag, majors), base
