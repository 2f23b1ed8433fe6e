"""Users that only read: the C++ client of reconstruction jobs, a Python job with ETags, and Belle II's client."""

import re
from typing import Any
from urllib.parse import quote

from cdb_rest.rules.moment import Moment
from cdb_rest.scenarios.definitions import SCENARIOS, payload_type_names
from loadtests.client import lookup_path
from loadtests.users.base import CheckedUser
from loadtests.users.calls import Calls, Check, Reply, lists
from loadtests.users.subject import Subject

# A Python job repeats the lookup of a run for each of its files.
LOOKUPS_OF_A_RUN = 10
# Servers do not close connections that were idle for less than this.
FRESH_SECONDS = 2.0
STATUS = re.compile(rb'"status"\s*:\s*\{[^{}]*"name"\s*:\s*"[^"]+"')


class Reader(CheckedUser):
    """A user that reads the tag of the options; the locustfile prepares the subject."""

    abstract = True

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.subject: Subject = environment.subject


class ReconstructionJob(Reader):
    """Checks that the tag exists, then looks up its payloads at a moment; each request over a new connection."""

    weight = 20

    def job(self, calls: Calls) -> None:
        """Request the list of tags, then a lookup."""
        subject = self.subject
        calls.request("GET", "globalTags", name="globalTags", check=lists(subject.tag))
        moment = subject.draw()
        calls.request("GET", subject.path(moment), name="lookup", check=subject.check(moment))


class KeepAliveJob(Reader):
    """Repeats the lookup of a moment in several jobs, over one connection, with the ETag of its last response."""

    weight = 5

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        # Servers close idle connections after some seconds. Real clients check that; here the connection is closed
        # beforehand.
        self.keeps_connections = self.options.pause <= FRESH_SECONDS
        self._moment = Moment(0, 0)
        self._etag = ""
        self._uses = 0

    def job(self, calls: Calls) -> None:
        """Send one lookup; the moment changes after `LOOKUPS_OF_A_RUN` jobs."""
        if self._uses % LOOKUPS_OF_A_RUN == 0:
            self._moment, self._etag = self.subject.draw(), ""
        self._uses += 1
        moment, etag = self._moment, self._etag
        reply = calls.request(
            "GET",
            self.subject.path(moment),
            name="lookup again" if etag else "lookup, kept connection",
            status=(200, 304) if etag else 200,
            headers={"If-None-Match": etag} if etag else None,
            check=lambda reply: self._fault(moment, etag, reply),
        )
        if moment == self._moment and reply.status == 200:
            self._etag = reply.headers["ETag"]

    def _fault(self, moment: Moment, etag: str, reply: Reply) -> str | None:
        if reply.status == 304:
            return "304 with a body" if reply.body else None
        if not reply.headers.get("ETag"):
            return "no ETag"
        if reply.headers["ETag"] == etag:
            return "200 with the same ETag instead of 304"
        return self.subject.fault(moment, reply)


class SingleRequest(Reader):
    """Sends one request to the route of `--route`, over a new connection; campaigns compare routes and rates with it."""

    def job(self, calls: Calls) -> None:
        """Send one request."""
        subject, moment, route = self.subject, self.subject.draw(), self.options.route
        requests: dict[str, tuple[str, Check]] = {
            "lookup": (subject.path(moment), subject.check(moment)),
            "globalTags": ("globalTags", lists(subject.tag)),
            "gtPayloadLists": (f"gtPayloadLists/{quote(subject.tag)}", self._fault_of_lists),
        }
        default = lookup_path(subject.tag, moment, route), subject.check(moment)
        path, check = requests.get(route, default)
        calls.request("GET", path, name=route, check=check)

    def _fault_of_lists(self, reply: Reply) -> str | None:
        scenario = SCENARIOS.get(self.options.scenario)
        if scenario is None:
            return None if reply.json and all(isinstance(name, str) for name in reply.json.values()) else "no lists"
        are_same = sorted(reply.json) == sorted(payload_type_names(scenario.payload_types))
        return None if are_same else f"not the {scenario.payload_types} payload types of the scenario"


class BelleJob(Reader):
    """The four requests that Belle II's client sends before each job."""

    weight = 5

    def job(self, calls: Calls) -> None:
        """Request the list of statuses, the base URL of payloads, the status of the tag, and a lookup."""
        subject = self.subject
        calls.request("GET", "gtstatus", name="gtstatus", check=lists("unlocked"))
        calls.request("GET", "user_settings/CDB_PAYLOAD_BASE_URL", name="user_settings", check=_payload_base)
        calls.request("GET", f"globalTag/{quote(subject.tag)}", name="globalTag", check=_status_of_tag)
        moment = subject.draw()
        path = subject.path(moment, as_objects=True)
        calls.request("GET", path, name="lookup, shape=dict", check=subject.check(moment, as_objects=True))


def _payload_base(reply: Reply) -> str | None:
    return None if isinstance(reply.json["CDB_PAYLOAD_BASE_URL"], str) else "the base URL is not a string"


def _status_of_tag(reply: Reply) -> str | None:
    # A nested tag may have a gigabyte, of which the client needs one word, so it is not parsed.
    whole = reply.body.rstrip().endswith(b"}")
    return None if whole and STATUS.search(reply.body[:2000]) else "the beginning has no status, or the end is missing"
