"""A service with a streaming replica, and the statements that each server received."""

import contextlib
import time

import psycopg2

from tests.e2e.service import JobClient

LOOKUP = "payloadiovs/?gtName={}&majorIOV=9000000&minorIOV=0"
WITHIN_SECONDS = 30
TELLING = {"log_statement": "all"}


class Pair:
    """A service and its replica, with a frozen tag, an unlocked one, and clients for both."""

    def __init__(self, service, standby):
        self.service, self.standby = service, standby
        self.client = JobClient(service.port)

    def insert(self, number):
        row = {"global_tag": "fresh", "payload_type": "Fresh", "payload_url": str(number), "checksum": "c"}
        status, answer = self.client.call("POST", "payload-iovs/insert", row | {"since": [number, 0], "until": "open"})
        assert status == 200, answer

    def newest(self):
        """The number of the row that was inserted last."""
        return int(self.client.get(LOOKUP.format("fresh"))[0][1])

    def lines(self, beginning):
        return [line for line in self.service.lines if beginning in line]

    def is_in(self):
        """Whether the last that was said about the replica is that it is in rotation."""
        said = self.lines("rotation")
        return bool(said) and "is in rotation" in said[-1]

    def wait_until_in(self, expected=True):
        # Asking is what makes a process look after its replicas.
        deadline = time.monotonic() + WITHIN_SECONDS
        while self.is_in() != expected:
            assert time.monotonic() < deadline, self.service.lines
            self.client.get(LOOKUP.format("tiny"))
            time.sleep(0.1)


class Statements:
    """Counts what two servers log of the statements that they are sent."""

    def __init__(self, pair):
        self._files = (pair.service.data / "postgres" / "server.log", pair.standby.log)
        self._sizes = [file.stat().st_size for file in self._files]

    def count(self, words):
        """How many statements with these words each was sent since the making: the primary and the replica."""
        found = []
        for file, size in zip(self._files, self._sizes, strict=True):
            with file.open("rb") as log:
                log.seek(size)
                found.append(sum(words.encode() in line for line in log))
        return tuple(found)


def tell(url):
    """Let a server that runs log its statements."""
    with contextlib.closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for name, value in TELLING.items():
            cursor.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        cursor.execute("SELECT pg_reload_conf()")
