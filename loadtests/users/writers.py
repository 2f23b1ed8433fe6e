"""Users that write: an expert that inserts payloads, and an indecisive user that deletes the tags it creates.

They write only to their own tags and payload types, which they delete at the end.
"""

import uuid
from functools import partial
from typing import Any

import gevent
from gevent.lock import Semaphore

from loadtests.client import lookup_path
from loadtests.content.expected import insert_body, row_of
from loadtests.users.base import CheckedUser
from loadtests.users.calls import Calls, Check, JobEndedError, Reply, lists

INSERT = "payload-iovs/insert"


class WritingUser(CheckedUser):
    """A user that records what it created and deletes it at the end."""

    abstract = True

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        # Paths of DELETE requests, sent in reverse order.
        self._created: list[str] = []

    def create_tag(self, calls: Calls, tag: str) -> None:
        """Create an unlocked tag."""
        self._created.append(f"deleteGlobalTag/{tag}")
        body = {"name": tag, "status": "unlocked", "author": "load test"}
        calls.request("POST", "gt", name="create tag", json=body, check=_equals(tag, "name"))

    def delete(self, calls: Calls, path: str, *, name: str, status: int | tuple[int, ...] = 200) -> None:
        """Delete one of the created objects, by its path."""
        calls.request("DELETE", path, name=name, status=status, check=partial(_has, "detail"))
        self._created.remove(path)

    def on_stop(self) -> None:
        """Delete what is left. It may not exist, if the request that created it failed without a response."""
        for path in reversed(list(self._created)):
            # Objects are created by jobs only, so there is an idle session.
            calls = Calls(self, self._idle[-1], None)
            try:
                self.delete(calls, path, name="clean up", status=(200, 404))
            except JobEndedError:
                continue


class Expert(WritingUser):
    """Inserts payloads as the C++ client does, and by a single request; sends a dry run.

    Lists, browses, and reads back.
    """

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        # The jobs of an expert do not overlap, even if they start at a rate.
        self._busy = Semaphore()
        self._tag = ""

    def job(self, calls: Calls) -> None:
        """Insert in both ways and read back; the first job creates a tag with two payload types."""
        with self._busy:
            if not self._tag:
                self._prepare(calls)
            tag, self._tag = self._tag, ""
            self._number += 1
            attached, single = self._rows(tag, self._number)
            # A dry run must change nothing; `_read_back` would detect a change.
            dry = attached | {"dry_run": True}
            calls.request("POST", INSERT, name="insert, dry run", json=dry, check=lambda reply: _planned(reply, dry))
            self._attach(calls, tag, attached)
            calls.request("POST", INSERT, name="insert", json=single, check=inserted(single))
            self._read_back(calls, tag)
            self._browse(calls, tag)
            # Not reached by a job that failed, of which it is unknown what was stored: the next job then
            # creates a new tag.
            self._tag = tag

    def _prepare(self, calls: Calls) -> None:
        tag = f"load-expert-{uuid.uuid4().hex[:12]}"
        calls.request("GET", "gtstatus", name="gtstatus", check=lists("unlocked"))
        # Payloads of the first type are inserted with several requests, those of the second with one.
        self._types = [f"{tag}-{kind}" for kind in ("attached", "inserted")]
        for kind in self._types:
            self._created.append(f"deletePayloadType/{kind}")
            calls.request("POST", "pt", name="create type", json={"name": kind}, check=_equals(kind, "name"))
        self.create_tag(calls, tag)
        self._number = -1
        self._tag = tag

    def _rows(self, tag: str, number: int) -> list[dict[str, Any]]:
        """The rows of both types with a number, as bodies of inserts."""
        return [insert_body(tag, kind, number, (number, 0)) for kind in self._types]

    def _attach(self, calls: Calls, tag: str, row: dict[str, Any]) -> None:
        """Insert a row as the C++ client does, with several requests."""
        kind, path = row["payload_type"], f"gtPayloadLists/{tag}"
        calls.request("GET", "globalTags", name="globalTags", check=lists(tag))
        calls.request("GET", "pt", name="pt", check=lists(kind))
        known = calls.request("GET", path, name="gtPayloadLists", check=lambda reply: _is(type(reply.json), dict)).json
        if kind not in known:
            new = {"payload_type": kind}
            created = calls.request("POST", "pl", name="create list", json=new, check=partial(_has, "name")).json[
                "name"
            ]
            body = {"global_tag": tag, "payload_list": created}
            calls.request("PUT", "pl_attach", name="attach list", json=body, check=_equals(created, "name"))
        attached = calls.request("GET", path, name="gtPayloadLists", check=partial(_has, kind)).json[kind]
        payload = {name: row[name] for name in ("payload_url", "checksum", "size", "revision")}
        body = payload | {"major_iov": row["since"][0], "minor_iov": row["since"][1]}

        def is_stored(reply: Reply) -> str | None:
            return _has("id", reply) or _is(reply.json["payload_url"], row["payload_url"])

        iov = calls.request("POST", "piov", name="create IOV", json=body, check=is_stored).json["id"]
        body = {"payload_list": attached, "piov_id": iov}
        calls.request("PUT", "piov_attach", name="attach IOV", json=body, check=_equals(attached, "payload_list"))

    def _read_back(self, calls: Calls, tag: str) -> None:
        """Look up the rows just written, and an earlier one, compared by URL because its end depends on the mode."""
        number, earlier = self._number, self._number // 2
        rows = [row_of(row) for row in self._rows(tag, number)]
        urls = [row["payload_url"] for row in self._rows(tag, earlier)]

        def read(major: int, check: Check) -> None:
            calls.request("GET", lookup_path(tag, (major, 5)), name="read back", check=check)

        read(number, lambda reply: _is(reply.json, rows))
        read(earlier, lambda reply: _is([row[1] for row in reply.json], urls))

    def _browse(self, calls: Calls, tag: str) -> None:
        count = 2 * (self._number + 1)

        def found(reply: Reply) -> str | None:
            [item] = reply.json["results"]
            return _is((item["name"], item["payload_lists_count"], item["payload_iov_count"]), (tag, 2, count))

        calls.request("GET", f"globalTags?page=1&search={tag}", name="browse tags", check=found)
        path = f"piov?page=1&page_size=10&global_tag={tag}&sort=major_iov&order=desc"
        calls.request("GET", path, name="browse IOVs", check=_equals(count, "count"))


class Indecisive(WritingUser):
    """Creates a tag, waits, and deletes it; `--iterations` is the number of tags of each user."""

    # It waits inside its jobs.
    pause = 0.0

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._left = self.options.iterations or self._left

    def job(self, calls: Calls) -> None:
        """Create a tag, read it, wait, delete it, and check that it is deleted."""
        tag = f"load-indecisive-{uuid.uuid4().hex[:12]}"
        self.create_tag(calls, tag)
        path = f"globalTag/{tag}?light"
        calls.request("GET", path, name="globalTag, light", check=_equals(tag, "name"))
        gevent.sleep(self.options.indecision)
        self.delete(calls, f"deleteGlobalTag/{tag}", name="delete tag")
        calls.request("GET", path, name="deleted tag", status=404, check=_equals("global_tag_not_found", "code"))


def _is(found: Any, expected: Any) -> str | None:
    return None if found == expected else f"expected {expected}, got {found}"


def _equals(expected: Any, name: str) -> Check:
    """A check that a field has a value."""
    return lambda reply: _is(reply.json[name], expected)


def _has(name: str, reply: Reply) -> str | None:
    """Check that a field is not empty.

    The next requests need it and would otherwise fail as if by a fault of the generator.
    """
    return None if reply.json[name] else f"no {name} in {reply.json}"


def _planned(reply: Reply, row: dict[str, Any]) -> str | None:
    plan = reply.json
    return _is((plan["dry_run"], plan["refused"], plan["revisions"]), (True, None, {})) or inserted(row)(reply)


def inserted(row: dict[str, Any]) -> Check:
    """A check that the response to an insert has this row, with an id unless it was a dry run."""

    def check(reply: Reply) -> str | None:
        [change] = reply.json["rows"]
        added = change["added"]
        found = change["payload_type"], added["payload_url"], added["since"], bool(added["id"])
        is_stored = not reply.json["dry_run"]
        return _is(found, (row["payload_type"], row["payload_url"], list(row["since"]), is_stored))

    return check
