"""Users that only ask: the C++ client of reconstruction jobs, a Python job that keeps what it has, and Belle II's client."""

import re
from typing import Any
from urllib.parse import quote

from cdb_rest.domain.moment import Moment
from loadtests.users.base import Calls, CheckedUser, Reply
from loadtests.users.subject import subject_of

# A Python job looks up what is valid in a run so many times, for as many files of it.
LOOKUPS_OF_A_RUN = 10
# No server closes connections that were idle for so short a time.
FRESH_SECONDS = 2.0
# A nested tag may have a gigabyte, which no generator should parse for the one word that the client wants.
PARSED_BYTES = 1_000_000
STATUS = re.compile(rb'"status"\s*:\s*\{[^{}]*"name"\s*:\s*"[^"]+"')


class Reader(CheckedUser):
    """Asks about the tag of the options."""

    abstract = True

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.subject = subject_of(self.options)


class ReconstructionJob(Reader):
    """Asks whether the tag exists, then for its payloads at a moment, each over a new connection."""

    weight = 20

    def job(self, calls: Calls) -> None:
        """Two calls."""
        subject = self.subject
        calls.ask("GET", "globalTags", name="globalTags", check=subject.named)
        moment = subject.draw()
        calls.ask("GET", subject.path(moment), name="lookup", check=subject.check(moment))


class KeepAliveJob(Reader):
    """Looks up the same moment for some jobs, over one connection, and sends back the name of the answer that it has."""

    weight = 5
    keeps_connections = True

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._moment = Moment(0, 0)
        self._tag = ""
        self._uses = 0

    def job(self, calls: Calls) -> None:
        """One call; a new moment after some of them."""
        if self._uses % LOOKUPS_OF_A_RUN == 0:
            self._moment, self._tag = self.subject.draw(), ""
        self._uses += 1
        # Servers close connections that were idle for some seconds. A client that keeps one looks whether it is still there.
        if self.options.pause > FRESH_SECONDS:
            calls.hang_up()
        moment, known = self._moment, self._tag
        reply = calls.ask(
            "GET",
            self.subject.path(moment),
            name="lookup again" if known else "lookup, kept connection",
            status=(200, 304) if known else 200,
            headers={"If-None-Match": known} if known else None,
            check=lambda reply: self._fault(moment, known, reply),
        )
        if moment == self._moment and reply.status == 200:
            self._tag = reply.headers["ETag"]

    def _fault(self, moment: Moment, known: str, reply: Reply) -> str | None:
        if reply.status == 304:
            return "304 with a body" if reply.body else None
        if not reply.headers.get("ETag"):
            return "no ETag"
        if reply.headers["ETag"] == known:
            return "200, though the answer that we have still holds"
        return self.subject.fault(moment, reply)


class BelleJob(Reader):
    """The four calls of Belle II's client, before each of its jobs."""

    weight = 5

    def job(self, calls: Calls) -> None:
        """Statuses, where the payloads are, the tag's status, the payloads."""
        subject = self.subject
        calls.ask("GET", "gtstatus", name="gtstatus", check=_statuses)
        calls.ask("GET", "user_settings/CDB_PAYLOAD_BASE_URL", name="user_settings", check=_payload_base)
        calls.ask("GET", f"globalTag/{quote(subject.tag)}", name="globalTag", check=_status_of_tag)
        moment = subject.draw()
        path = subject.path(moment, as_objects=True)
        calls.ask("GET", path, name="lookup, shape=dict", check=subject.check(moment, as_objects=True))


def _statuses(reply: Reply) -> str | None:
    names = {item["name"] for item in reply.json}
    return None if "unlocked" in names else f"no status unlocked among {sorted(names)}"


def _payload_base(reply: Reply) -> str | None:
    return None if isinstance(reply.json["CDB_PAYLOAD_BASE_URL"], str) else "the base URL is no text"


def _status_of_tag(reply: Reply) -> str | None:
    if len(reply.body) < PARSED_BYTES:
        return None if reply.json["status"]["name"] else "the status has no name"
    whole = reply.body.rstrip().endswith(b"}")
    return None if whole and STATUS.search(reply.body[:2000]) else "the beginning has no status, or the end is missing"
