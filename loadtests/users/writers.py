"""Users that write: an expert who inserts payloads, and the indecisive, who take back what they made.

All of it is in tags and payload types of their own, which they delete in the end.
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
    """Keeps in mind what it has to delete."""

    abstract = True

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        # Paths to DELETE, the last one first.
        self._made: list[str] = []

    def create_tag(self, calls: Calls, tag: str) -> None:
        """Make an unlocked tag of its own."""
        self._made.append(f"deleteGlobalTag/{tag}")
        body = UNLOCKED | {"name": tag, "author": "load test"}
        calls.ask("POST", "gt", name="create tag", json=body, check=lambda reply: _is(reply.json["name"], tag))

    def delete(self, calls: Calls, path: str, *, name: str, status: int | tuple[int, ...] = 200) -> None:
        """Delete one of the things that were made."""
        calls.ask("DELETE", path, name=name, status=status, check=lambda reply: _is(bool(reply.json["detail"]), True))
        self._made.remove(path)

    def on_stop(self) -> None:
        """Delete what is left; it may be that the answer to its creation was lost, and it is not there."""
        for path in reversed(list(self._made)):
            # What was made was made by a job, whose session is idle now.
            calls = Calls(self, self._idle[-1], None)
            try:
                self.delete(calls, path, name="clean up", status=(200, 404))
            except JobEndedError:
                continue
        super().on_stop()


class Expert(WritingUser):
    """Inserts payloads as the C++ client does, and by one call; tries without doing; lists, browses; reads all of it back."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        # Jobs of an expert follow each other, also where they start at a rate.
        self._busy = Semaphore()
        self._tag = ""

    def job(self, calls: Calls) -> None:
        """Insert in the two ways, and read back; the first time into a new tag with two payload types."""
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
            # Of a job that failed it is not known what was stored, and the next one begins with another tag.
            self._tag = tag

    def _prepare(self, calls: Calls) -> None:
        tag = f"load-expert-{uuid.uuid4().hex[:12]}"
        calls.ask("GET", "gtstatus", name="gtstatus", check=lambda reply: _is("unlocked" in _names(reply), True))
        # Of two types the first gets its payloads step by step and the second by one call.
        self._types = [f"{tag}-{kind}" for kind in ("attached", "inserted")]
        for kind in self._types:
            self._made.append(f"deletePayloadType/{kind}")
            calls.ask("POST", "pt", name="create type", json={"name": kind}, check=partial(_is_named, name=kind))
        self.create_tag(calls, tag)
        self._number = -1
        self._tag = tag

    def _row(self, kind: str, number: int) -> list[Any]:
        """The row as a lookup at its start has it, when it is the last one."""
        return [kind, f"{kind}/{number:06d}", f"{number:032x}", number, number, 0, *END_OF_TIME, "1"]

    def _try(self, calls: Calls, tag: str) -> None:
        """A dry run, which must change nothing; `_read_back` would see it."""
        row = self._to_insert(tag, self._types[0]) | {"dry_run": True}
        calls.ask(
            "POST", "payload-iovs/insert", name="insert, dry run", json=row, check=lambda reply: _would(reply, row)
        )

    def _attach(self, calls: Calls, tag: str) -> None:
        kind = self._types[0]
        calls.ask("GET", "globalTags", name="globalTags", check=lambda reply: _is(tag in _names(reply), True))
        calls.ask("GET", "pt", name="pt", check=lambda reply: _is(kind in _names(reply), True))
        path, new = f"gtPayloadLists/{tag}", {"payload_type": kind}
        lists = calls.ask("GET", path, name="gtPayloadLists", check=lambda reply: _is(type(reply.json), dict)).json
        if kind not in lists:
            answer = calls.ask("POST", "pl", name="create list", json=new, check=lambda reply: _has(reply, "name"))
            made = answer.json["name"]
            body = {"global_tag": tag, "payload_list": made}
            calls.ask("PUT", "pl_attach", name="attach list", json=body, check=lambda reply: _is_named(reply, made))
        lists = calls.ask("GET", path, name="gtPayloadLists", check=lambda reply: _has(reply, kind))
        _, url, checksum, size, major, minor, *_, revision = self._row(kind, self._number)
        body = {
            "payload_url": url, "checksum": checksum, "size": size, "revision": revision, "major_iov": major, "minor_iov": minor,
        }  # fmt: skip
        made = calls.ask(
            "POST",
            "piov",
            name="create IOV",
            json=body,
            check=lambda reply: _has(reply, "id") or _is(reply.json["payload_url"], url),
        )
        body = {"payload_list": lists.json[kind], "piov_id": made.json["id"]}
        calls.ask(
            "PUT",
            "piov_attach",
            name="attach IOV",
            json=body,
            check=lambda reply: _is(reply.json["payload_list"], lists.json[kind]),
        )

    def _insert(self, calls: Calls, tag: str) -> None:
        row = self._to_insert(tag, self._types[1])
        calls.ask("POST", "payload-iovs/insert", name="insert", json=row, check=lambda reply: _did(reply, row))

    def _to_insert(self, tag: str, kind: str) -> dict[str, Any]:
        _, url, checksum, size, major, minor, *_, revision = self._row(kind, self._number)
        return {
            "global_tag": tag, "payload_type": kind, "payload_url": url, "checksum": checksum, "size": size, "revision": revision,
            "since": [major, minor], "until": "next",
        }  # fmt: skip

    def _read_back(self, calls: Calls, tag: str) -> None:
        """The rows that were just written, and an earlier one, by its URL because its end depends on the mode."""

        def lookup(number: int) -> str:
            return f"payloadiovs/?gtName={tag}&majorIOV={number}&minorIOV=5"

        rows = [self._row(kind, self._number) for kind in self._types]
        calls.ask("GET", lookup(self._number), name="read back", check=lambda reply: _is(reply.json, rows))
        earlier = self._number // 2
        urls = [self._row(kind, earlier)[1] for kind in self._types]
        calls.ask(
            "GET", lookup(earlier), name="read back", check=lambda reply: _is([row[1] for row in reply.json], urls)
        )

    def _browse(self, calls: Calls, tag: str) -> None:
        count = 2 * (self._number + 1)

        def found(reply: Reply) -> str | None:
            [item] = reply.json["results"]
            return _is((item["name"], item["payload_lists_count"], item["payload_iov_count"]), (tag, 2, count))

        calls.ask("GET", f"globalTags?page=1&search={tag}", name="browse tags", check=found)
        path = f"piov?page=1&page_size=10&global_tag={tag}&sort=major_iov&order=desc"
        calls.ask("GET", path, name="browse IOVs", check=lambda reply: _is(reply.json["count"], count))


class Indecisive(WritingUser):
    """Creates a tag, waits, and deletes it; the number of such iterations may be limited for all such users together."""

    iterations: Iterations | None = None

    def more(self) -> bool:
        """Takes one of the iterations."""
        return self.iterations.take()

    def job(self, calls: Calls) -> None:
        """One iteration."""
        tag = f"load-indecisive-{uuid.uuid4().hex[:12]}"
        self.create_tag(calls, tag)
        path = f"globalTag/{tag}?light"
        calls.ask("GET", path, name="globalTag, light", check=lambda reply: _is_named(reply, tag))
        gevent.sleep(self.options.indecision)
        self.delete(calls, f"deleteGlobalTag/{tag}", name="delete tag")
        calls.ask(
            "GET",
            path,
            name="deleted tag",
            status=404,
            check=lambda reply: _is(reply.json["code"], "global_tag_not_found"),
        )


def _is(found: Any, expected: Any) -> str | None:
    return None if found == expected else f"expected {expected}, got {found}"


def _has(reply: Reply, name: str) -> str | None:
    """What the next requests are made of has to be there: else they would fail by the generator's own fault, as it seems."""
    return None if reply.json[name] else f"no {name} in {reply.json}"


def _names(reply: Reply) -> set[str]:
    return {item["name"] for item in reply.json}


def _is_named(reply: Reply, name: str) -> str | None:
    return _is(reply.json["name"], name)


def _would(reply: Reply, row: dict[str, Any]) -> str | None:
    told = reply.json
    return _is((told["dry_run"], told["refused"], told["revisions"]), (True, None, {})) or _did(reply, row)


def _did(reply: Reply, row: dict[str, Any]) -> str | None:
    [told] = reply.json["rows"]
    return _is((told["added"]["payload_url"], told["added"]["since"]), (row["payload_url"], row["since"]))
