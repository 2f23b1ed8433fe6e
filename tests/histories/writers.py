"""Writers at the same time. Each write carries its number as a comment, by which `race_proof.py` finds it in the change log."""

import random
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.histories.oracle import AFTER_ALL, Row, wire_end

MAJORS = 30
GRID = [(major, 0) for major in range(MAJORS + 1)]


@dataclass
class Write:
    """What a write asked for: rows by tag and type, each with whether it is since-only; and the IOV that it takes away from
    where it is, by its id or by its start. A row that is not known is that IOV, with whatever interval it had by then. Or the
    revision to which it reverts a tag.
    """

    rows: list = field(default_factory=list)
    gone: int | tuple | None = None
    revision: int | None = None


class Race:
    """Writers to lists of two types in some tags, which clone tags, write to the clones, too, and delete tags. `connect` makes a
    client for a thread: it calls (method, path, body, headers) and returns status and parsed answer; `close` ends what it holds.
    """

    def __init__(self, connect, *, seed, tags=2, discrete=False):
        self.prefix = f"race{uuid.uuid4().hex[:8]}"
        self.tags = [f"{self.prefix}_{number}" for number in range(tags)]
        self.types = [f"{self.prefix}_{kind}" for kind in ("Gain", "Noise", "Late", "Spare")]
        # Those that are cloned, in this order, with the revision since which each has lists of the first two types.
        self.begins = dict.fromkeys(self.tags, 3)
        self.statuses = Counter()
        self.writes = {}
        # The lookups at revisions while the writers were writing, by tag, revision and moment.
        self.past = {}
        self._connect, self._seed, self.discrete = connect, seed, discrete
        self._lock = threading.Lock()
        self.acknowledged = set()
        self._lists = {}
        self._iovs = []
        self._weights = {
            self._attach: 4, self._bulk: 2, self._insert: 4, self._steal: 2, self._delete: 2, self._revert: 2,
            self._clone: 2, self._administrate: 1,
        }  # fmt: skip

    def run(self, *, writers, writes_each):
        """Let them write. The third type has no lists to begin with: the inserting writers race to make them."""
        client = self._connect()
        for name in self.types:
            self.do(client, "POST", "pt", {"name": name})
        for tag in self.tags:
            self.do(client, "POST", "gt", {"name": tag, "status": "unlocked"})
            for kind in self.types[:2]:
                made = self.do(client, "POST", "pl", {"payload_type": kind})
                self.do(client, "PUT", "pl_attach", {"global_tag": tag, "payload_list": made["name"]})
                self._lists[tag, kind] = made["name"]
        client.close()
        begin = threading.Barrier(writers)
        over = threading.Event()
        with ThreadPoolExecutor(writers + 1) as pool:
            reader = pool.submit(self._read_past, over)
            try:
                for done in [pool.submit(self._write, number, writes_each, begin) for number in range(writers)]:
                    done.result()
            finally:
                over.set()
            reader.result()

    def _read_past(self, over):
        """Look up at random revisions beside the writers: what was answered once is answered again."""
        client, chance = self._connect(), random.Random(f"{self._seed} past")
        try:
            while not over.is_set():
                tag, revision, moment = chance.choice(self.tags), chance.randint(1, 60), chance.choice(GRID)
                answer = self.look_up(client, tag, revision, moment)
                # A revision in the future has no answer yet.
                if answer is not None:
                    key = tag, revision, moment
                    assert self.past.setdefault(key, answer) == answer, key
        finally:
            client.close()

    def look_up(self, client, tag, revision, moment):
        """The payloads that are valid at the moment, by type, at a revision; None if there is no such revision."""
        path = f"payloadiovs/?gtName={tag}&majorIOV={moment[0]}&minorIOV={moment[1]}&strict=1&rev={revision}"
        answer = self.do(client, "GET", path, permitted=(200, 404))
        return None if "code" in answer else {row[0]: row[1] for row in answer}

    def _write(self, number, count, begin):
        client, chance = self._connect(), random.Random(f"{self._seed} {number}")
        begin.wait(60)
        try:
            for _ in range(count):
                chance.choices(list(self._weights), list(self._weights.values()))[0](client, chance)
        finally:
            client.close()

    # The kinds of writes

    def _attach(self, client, chance):
        tag, kind, row = chance.choice(self.tags), chance.choice(self.types[:2]), self._row(chance)
        comment = self._note(Write([(tag, kind, row, False)]))
        iov = self.do(client, "POST", "piov", self._columns(row))
        if self._try(client, comment, "PUT", "piov_attach", self._attachment(tag, kind, iov["id"], comment)):
            self._iovs.append(iov["id"])

    def _bulk(self, client, chance):
        """Rows of both kinds into several lists, of which none starts in another; a start that is taken already is refused."""
        rows = []
        for _ in range(chance.randint(1, 6)):
            tag, kind, row = chance.choice(self.tags), chance.choice(self.types[:2]), self._row(chance)
            others = [other for *place, other in rows if place == [tag, kind]]
            if not any(_starts_in(row, other) or _starts_in(other, row) for other in others):
                rows.append((tag, kind, row))
        # They are a set: the later starts come first.
        wanted = sorted(((*row, row[2].is_open) for row in rows), key=lambda row: row[2].start, reverse=True)
        comment = self._note(Write(wanted))
        body = [self._columns(row) | {"payload_list": self._lists[tag, kind]} for tag, kind, row, _ in wanted]
        self._try(client, comment, "POST", "bulk_piov", body, {"CDB-Comment": comment})

    def _insert(self, client, chance):
        wanted = []
        for _ in range(chance.randint(1, 3)):
            row = self._row(chance)
            wanted.append(
                (chance.choice(self.tags), chance.choice(self.types), row, row.is_open and chance.random() < 0.5)
            )
        comment = self._note(Write(wanted))
        body = [
            {
                "global_tag": tag,
                "payload_type": kind,
                "payload_url": row.label,
                "checksum": "c",
                "since": row.start,
                "until": "next" if since_only else wire_end(row.end, self.discrete),
            }
            for tag, kind, row, since_only in wanted
        ]
        headers = {"CDB-Comment": comment, "Idempotency-Key": f"{self.prefix}-{comment}"}
        first = self._try(client, comment, "POST", "payload-iovs/insert", body, headers)
        if first and chance.random() < 0.3:
            assert self.do(client, "POST", "payload-iovs/insert", body, headers) == first

    def _steal(self, client, chance):
        if not self._iovs:
            return
        iov_id = chance.choice(list(self._iovs))
        tag, kind = chance.choice(self.tags), chance.choice(self.types[:2])
        comment = self._note(Write([(tag, kind, None, False)], gone=iov_id))
        # Where it is in that list already, nothing happens, and nothing is logged.
        self._try(client, None, "PUT", "piov_attach", self._attachment(tag, kind, iov_id, comment))

    def _delete(self, client, chance):
        tag, kind = chance.choice(self.tags), chance.choice(self.types[:2])
        page = self.do(client, "GET", f"piov?page=1&payload_list={self._lists[tag, kind]}&page_size=100")
        if not page["results"]:
            return
        iov = chance.choice(page["results"])
        ends = [iov[name] for name in ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")]
        comment = self._note(Write(gone=(iov["major_iov"], iov["minor_iov"])))
        path = f"deletePayloadIOV/{tag}/{kind}/{'/'.join(map(str, ends))}"
        self._try(client, comment, "DELETE", path, None, {"CDB-Comment": comment})

    def _revert(self, client, chance):
        """Back to any revision that has the lists of the first two types, which the other writers know by name."""
        tag = chance.choice(self.tags)
        latest = self.do(client, "GET", f"global-tags/{tag}/changes")["results"][0]["revision"]
        revision = chance.randint(self.begins[tag], latest)
        comment = self._note(Write(revision=revision))
        body = {"revision": revision, "comment": comment}
        self._try(client, comment, "POST", f"global-tags/{tag}/revert", body)

    def _clone(self, client, chance):
        """A further tag to write to, a clone of one that is or was there. If there are many, the oldest is deleted."""
        source, copy = chance.choice(list(self.begins)), f"{self.prefix}_{uuid.uuid4().hex}"
        past = f"?rev={self.begins[source] + chance.randrange(5)}" if chance.random() < 0.3 else ""
        if self._try(client, None, "POST", f"cloneGlobalTag/{source}/{copy}{past}", None):
            lists = self.do(client, "GET", f"gtPayloadLists/{copy}")
            self._lists |= {(copy, kind): lists[kind] for kind in self.types[:2]}
            with self._lock:
                self.begins[copy] = 1
                self.tags = [*self.tags, copy]
                oldest, self.tags = (self.tags[0], self.tags[1:]) if len(self.tags) > 3 else (None, self.tags)
            if oldest:
                self._try(client, None, "DELETE", f"deleteGlobalTag/{oldest}", None)

    def _administrate(self, client, chance):
        """What locks whole tags: statuses, lists that come and go, clones and their deletion. Then others may be refused."""
        tag, other = chance.choice(self.tags), chance.choice(self.tags)
        for status in ("locked", "unlocked"):
            self._try(client, None, "PUT", f"gt_change_status/{tag}/{status}", None)
        spare = self.do(client, "POST", "pl", {"payload_type": self.types[3]})["name"]
        for home in (tag, other):
            self._try(client, None, "PUT", "pl_attach", {"global_tag": home, "payload_list": spare})
        self._try(client, None, "DELETE", f"deletePayloadList/{spare}", None)
        copy = f"{self.prefix}_{uuid.uuid4().hex}"
        if self._try(client, None, "POST", f"cloneGlobalTag/{tag}/{copy}", None):
            self.do(client, "DELETE", f"deleteGlobalTag/{copy}", None)

    def _note(self, write):
        with self._lock:
            comment = str(len(self.writes) + 1)
            self.writes[comment] = write
        return comment

    def _row(self, chance):
        first = chance.randrange(MAJORS)
        last = first + chance.randint(1, 8)
        end = AFTER_ALL if last > MAJORS or chance.random() < 0.1 else (last, 0)
        return Row(uuid.uuid4().hex, (first, 0), end)

    def _columns(self, row):
        end = wire_end(row.end, self.discrete)
        return {
            "payload_url": row.label, "checksum": "c", "major_iov": row.start[0], "minor_iov": row.start[1],
            "major_iov_end": end[0], "minor_iov_end": end[1],
        }  # fmt: skip

    def _attachment(self, tag, kind, iov_id, comment):
        return {"payload_list": self._lists[tag, kind], "piov_id": iov_id, "comment": comment}

    def _try(self, client, comment, *request):
        """The answer, or None where it was refused. What is acknowledged has to be in the log."""
        answer = self.do(client, *request, permitted=(200, 404, 409))
        # What changes nothing is not in the log.
        if "code" in answer or not answer.get("changed", True):
            return None
        if comment:
            with self._lock:
                self.acknowledged.add(comment)
        return answer

    def do(self, client, method, path, body=None, headers=None, permitted=(200,)):
        """The parsed response to a request, whose status must be one of the permitted ones."""
        status, answer = client.call(method, path, body, headers or {})
        self.statuses[status] += 1
        assert status in permitted, (method, path, status, answer)
        return answer


def _starts_in(row, other):
    """Whether a row starts with another one, or before its end."""
    return row.start == other.start or (not other.is_open and other.start < row.start < other.end)
