"""Users that write: an expert that inserts payloads, and an indecisive user that deletes the tags it creates.

They write only to their own tags and payload types, which they delete at the end.
"""

import uuid
from functools import partial
from typing import Any

import gevent
from gevent.lock import Semaphore

from cdb_rest.domain.moment import END_OF_TIME
from loadtests.users.base import Calls, CheckedUser, JobEndedError, Reply
from loadtests.users.iterations import Iterations

UNLOCKED = {"status": "unlocked"}


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
        body = UNLOCKED | {"name": tag, "author": "load test"}
        calls.request("POST", "gt", name="create tag", json=body, check=lambda reply: _is(reply.json["name"], tag))

    def delete(self, calls: Calls, path: str, *, name: str, status: int | tuple[int, ...] = 200) -> None:
        """Delete one of the created objects, by its path."""
        calls.request(
            "DELETE", path, name=name, status=status, check=lambda reply: _is(bool(reply.json["detail"]), True)
        )
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
        super().on_stop()


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
            self._try(calls, tag)
            self._attach(calls, tag)
            self._insert(calls, tag)
            self._read_back(calls, tag)
            self._browse(calls, tag)
            # Not reached by a job that failed, of which it is unknown what was stored: the next job then
            # creates a new tag.
            self._tag = tag

    def _prepare(self, calls: Calls) -> None:
        tag = f"load-expert-{uuid.uuid4().hex[:12]}"
        calls.request("GET", "gtstatus", name="gtstatus", check=lambda reply: _is("unlocked" in _names(reply), True))
        # Payloads of the first type are inserted with several requests, those of the second with one.
        self._types = [f"{tag}-{kind}" for kind in ("attached", "inserted")]
        for kind in self._types:
            self._created.append(f"deletePayloadType/{kind}")
            calls.request("POST", "pt", name="create type", json={"name": kind}, check=partial(_is_named, name=kind))
        self.create_tag(calls, tag)
        self._number = -1
        self._tag = tag

    def _row(self, kind: str, number: int) -> list[Any]:
        """The row as a lookup at its start returns it, if it is the last one of its list."""
        return [kind, f"{kind}/{number:06d}", f"{number:032x}", number, number, 0, *END_OF_TIME, "1"]

    def _try(self, calls: Calls, tag: str) -> None:
        """Send a dry run, which must change nothing; `_read_back` would detect a change."""
        row = self._to_insert(tag, self._types[0]) | {"dry_run": True}
        calls.request(
            "POST", "payload-iovs/insert", name="insert, dry run", json=row, check=lambda reply: _planned(reply, row)
        )

    def _attach(self, calls: Calls, tag: str) -> None:
        kind = self._types[0]
        calls.request("GET", "globalTags", name="globalTags", check=lambda reply: _is(tag in _names(reply), True))
        calls.request("GET", "pt", name="pt", check=lambda reply: _is(kind in _names(reply), True))
        path, new = f"gtPayloadLists/{tag}", {"payload_type": kind}
        lists = calls.request("GET", path, name="gtPayloadLists", check=lambda reply: _is(type(reply.json), dict)).json
        if kind not in lists:
            reply = calls.request("POST", "pl", name="create list", json=new, check=lambda reply: _has(reply, "name"))
            created = reply.json["name"]
            body = {"global_tag": tag, "payload_list": created}
            calls.request(
                "PUT", "pl_attach", name="attach list", json=body, check=lambda reply: _is_named(reply, created)
            )
        lists = calls.request("GET", path, name="gtPayloadLists", check=lambda reply: _has(reply, kind))
        _, url, checksum, size, major, minor, *_, revision = self._row(kind, self._number)
        body = {
            "payload_url": url, "checksum": checksum, "size": size, "revision": revision, "major_iov": major, "minor_iov": minor,
        }  # fmt: skip
        iov = calls.request(
            "POST",
            "piov",
            name="create IOV",
            json=body,
            check=lambda reply: _has(reply, "id") or _is(reply.json["payload_url"], url),
        )
        body = {"payload_list": lists.json[kind], "piov_id": iov.json["id"]}
        calls.request(
            "PUT",
            "piov_attach",
            name="attach IOV",
            json=body,
            check=lambda reply: _is(reply.json["payload_list"], lists.json[kind]),
        )

    def _insert(self, calls: Calls, tag: str) -> None:
        row = self._to_insert(tag, self._types[1])
        calls.request("POST", "payload-iovs/insert", name="insert", json=row, check=lambda reply: _inserted(reply, row))

    def _to_insert(self, tag: str, kind: str) -> dict[str, Any]:
        _, url, checksum, size, major, minor, *_, revision = self._row(kind, self._number)
        return {
            "global_tag": tag, "payload_type": kind, "payload_url": url, "checksum": checksum, "size": size, "revision": revision,
            "since": [major, minor], "until": "next",
        }  # fmt: skip

    def _read_back(self, calls: Calls, tag: str) -> None:
        """Look up the rows just written, and an earlier one, compared by URL because its end depends on the mode."""

        def lookup(number: int) -> str:
            return f"payloadiovs/?gtName={tag}&majorIOV={number}&minorIOV=5"

        rows = [self._row(kind, self._number) for kind in self._types]
        calls.request("GET", lookup(self._number), name="read back", check=lambda reply: _is(reply.json, rows))
        earlier = self._number // 2
        urls = [self._row(kind, earlier)[1] for kind in self._types]
        calls.request(
            "GET", lookup(earlier), name="read back", check=lambda reply: _is([row[1] for row in reply.json], urls)
        )

    def _browse(self, calls: Calls, tag: str) -> None:
        count = 2 * (self._number + 1)

        def found(reply: Reply) -> str | None:
            [item] = reply.json["results"]
            return _is((item["name"], item["payload_lists_count"], item["payload_iov_count"]), (tag, 2, count))

        calls.request("GET", f"globalTags?page=1&search={tag}", name="browse tags", check=found)
        path = f"piov?page=1&page_size=10&global_tag={tag}&sort=major_iov&order=desc"
        calls.request("GET", path, name="browse IOVs", check=lambda reply: _is(reply.json["count"], count))


class Indecisive(WritingUser):
    """Creates a tag, waits, and deletes it; `--iterations` limits the iterations of all these users together."""

    iterations: Iterations | None = None

    def has_next_job(self) -> bool:
        """Take one of the iterations; False if none is left."""
        return self.iterations.take()

    def job(self, calls: Calls) -> None:
        """Create a tag, read it, wait, delete it, and check that it is deleted."""
        tag = f"load-indecisive-{uuid.uuid4().hex[:12]}"
        self.create_tag(calls, tag)
        path = f"globalTag/{tag}?light"
        calls.request("GET", path, name="globalTag, light", check=lambda reply: _is_named(reply, tag))
        gevent.sleep(self.options.indecision)
        self.delete(calls, f"deleteGlobalTag/{tag}", name="delete tag")
        calls.request(
            "GET",
            path,
            name="deleted tag",
            status=404,
            check=lambda reply: _is(reply.json["code"], "global_tag_not_found"),
        )


def _is(found: Any, expected: Any) -> str | None:
    return None if found == expected else f"expected {expected}, got {found}"


def _has(reply: Reply, name: str) -> str | None:
    """Check that the field is not empty.

    The next requests need it and would otherwise fail as if by a fault of the generator.
    """
    return None if reply.json[name] else f"no {name} in {reply.json}"


def _names(reply: Reply) -> set[str]:
    return {item["name"] for item in reply.json}


def _is_named(reply: Reply, name: str) -> str | None:
    return _is(reply.json["name"], name)


def _planned(reply: Reply, row: dict[str, Any]) -> str | None:
    plan = reply.json
    return _is((plan["dry_run"], plan["refused"], plan["revisions"]), (True, None, {})) or _inserted(reply, row)


def _inserted(reply: Reply, row: dict[str, Any]) -> str | None:
    [change] = reply.json["rows"]
    return _is((change["added"]["payload_url"], change["added"]["since"]), (row["payload_url"], row["since"]))
