"""Writers at the same time, and the proof that what they left is what some order of their writes leaves.

Each write carries its number as a comment. The change log says in which order they took effect, and each change in it has
to be what the oracle makes of that write, from the state that the change before it had left.
"""

import random
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.histories.oracle import AFTER_ALL, Log, Request, Row, half_open_end, valid_payload, wire_end

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
    """Writers to lists of two types in some tags. `connect` makes a client for a thread: it calls
    (method, path, body, headers) and returns status and parsed answer; `close` ends what it holds.
    """

    def __init__(self, connect, *, seed, tags=2, discrete=False):
        self.prefix = f"race{uuid.uuid4().hex[:8]}"
        self.tags = [f"{self.prefix}_{number}" for number in range(tags)]
        self.types = [f"{self.prefix}_{kind}" for kind in ("Gain", "Noise", "Late", "Spare")]
        self.statuses = Counter()
        self.writes = {}
        # The lookups at revisions while the writers were writing, by tag, revision and moment.
        self.past = {}
        self._connect, self._seed, self._discrete = connect, seed, discrete
        self._lock = threading.Lock()
        self._acknowledged = set()
        self._lists = {}
        self._iovs = []
        self._weights = {
            self._attach: 4,
            self._bulk: 2,
            self._insert: 4,
            self._steal: 2,
            self._delete: 2,
            self._revert: 2,
            self._administrate: 1,
        }

    def run(self, *, writers, writes_each):
        """Let them write. The third type has no lists to begin with: the inserting writers race to make them."""
        client = self._connect()
        for name in self.types:
            self._do(client, "POST", "pt", {"name": name})
        for tag in self.tags:
            self._do(client, "POST", "gt", {"name": tag, "status": "unlocked"})
            for kind in self.types[:2]:
                made = self._do(client, "POST", "pl", {"payload_type": kind})
                self._do(client, "PUT", "pl_attach", {"global_tag": tag, "payload_list": made["name"]})
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
                answer = self._look_up(client, tag, revision, moment)
                # A revision in the future has no answer yet.
                if answer is not None:
                    key = tag, revision, moment
                    assert self.past.setdefault(key, answer) == answer, key
        finally:
            client.close()

    def _look_up(self, client, tag, revision, moment):
        """The payloads that are valid at the moment, by type, at a revision; None if there is no such revision."""
        path = f"payloadiovs/?gtName={tag}&majorIOV={moment[0]}&minorIOV={moment[1]}&strict=1&rev={revision}"
        answer = self._do(client, "GET", path, permitted=(200, 404))
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
        iov = self._do(client, "POST", "piov", self._columns(row))
        if self._try(client, comment, "PUT", "piov_attach", self._attachment(tag, kind, iov["id"], comment)):
            self._iovs.append(iov["id"])

    def _bulk(self, client, chance):
        """Rows of both kinds into several lists; a start that is taken already is refused."""
        rows = {}
        for _ in range(chance.randint(1, 6)):
            tag, kind, row = chance.choice(self.tags), chance.choice(self.types[:2]), self._row(chance)
            rows.setdefault((tag, kind, row.start), row)
        wanted = [(tag, kind, row, row.is_open) for (tag, kind, _), row in rows.items()]
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
                "until": "next" if since_only else wire_end(row.end, self._discrete),
            }
            for tag, kind, row, since_only in wanted
        ]
        headers = {"CDB-Comment": comment, "Idempotency-Key": f"{self.prefix}-{comment}"}
        first = self._try(client, comment, "POST", "payload-iovs/insert", body, headers)
        if first and chance.random() < 0.3:
            assert self._do(client, "POST", "payload-iovs/insert", body, headers) == first

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
        page = self._do(client, "GET", f"piov?page=1&payload_list={self._lists[tag, kind]}&page_size=100")
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
        latest = self._do(client, "GET", f"global-tags/{tag}/changes")["results"][0]["revision"]
        revision = chance.randint(len(self.types[:2]) + 1, latest)
        comment = self._note(Write(revision=revision))
        body = {"revision": revision, "comment": comment}
        self._try(client, comment, "POST", f"global-tags/{tag}/revert", body)

    def _administrate(self, client, chance):
        """What locks whole tags: statuses, lists that come and go, clones and their deletion. Then others may be refused."""
        tag, other = chance.choice(self.tags), chance.choice(self.tags)
        for status in ("locked", "unlocked"):
            self._do(client, "PUT", f"gt_change_status/{tag}/{status}", None)
        spare = self._do(client, "POST", "pl", {"payload_type": self.types[3]})["name"]
        for home in (tag, other):
            self._try(client, None, "PUT", "pl_attach", {"global_tag": home, "payload_list": spare})
        self._try(client, None, "DELETE", f"deletePayloadList/{spare}", None)
        copy = f"{self.prefix}_{uuid.uuid4().hex}"
        self._do(client, "POST", f"cloneGlobalTag/{tag}/{copy}", None)
        self._do(client, "DELETE", f"deleteGlobalTag/{copy}", None)

    # The proof

    def verify(self, client):
        """Hold every change that was made, in the order of the log, against the oracle; returns how many there were."""
        changes = []
        for tag in self.tags:
            pages = self._do(client, "GET", f"global-tags/{tag}/changes?page=1&page_size=1000")
            assert pages["total_pages"] == 1
            revisions = [change["revision"] for change in pages["results"]]
            assert revisions == list(range(len(revisions), 0, -1))
            changes += [self._do(client, "GET", f"global-tags/{tag}/changes/{revision}") for revision in revisions]
        assert self._acknowledged <= {change["comment"] for change in changes}
        log, checked = Log(changes), 0
        for tag in self.tags:
            state, states = None, {}
            for change, before, state in log.steps(tag):
                states[change["revision"]] = state
                if change["action"] == "revert":
                    self._check_reversion(state, states[self.writes[change["comment"]].revision])
                    checked += 1
                elif change["comment"]:
                    self._check(tag, change, before, state)
                    checked += 1
                self._check_past(client, tag, change["revision"], state)
            self._check_end(client, tag, state)
        return checked

    def _check(self, tag, change, before, after):
        write = self.writes[change["comment"]]
        taken = self._find(change["before"], write.gone)
        for kind in self.types:
            request = Request(GRID, [row for row in self._rows(before, kind) if row not in taken], protected=False)
            for row_tag, row_kind, row, since_only in write.rows:
                if (row_tag, row_kind) == (tag, kind):
                    [given] = [row] if row else self._find(change["after"], write.gone)
                    request.place(0, given, since_only)
            now = self._rows(after, kind)
            assert {moment: valid_payload(now, moment) for moment in GRID} == request.v, (change["revision"], kind)

    def _check_past(self, client, tag, revision, state):
        """A lookup at each revision returns what the log says of it."""
        rows = {kind: self._rows(state, kind) for kind in self.types}
        for moment in GRID[revision % 5 :: 5]:
            valid = {kind: valid_payload(of_kind, moment) for kind, of_kind in rows.items()}
            expected = {kind: label for kind, label in valid.items() if label}
            assert self._look_up(client, tag, revision, moment) == expected, (tag, revision, moment)
            assert self.past.get((tag, revision, moment), expected) == expected

    def _check_reversion(self, state, then):
        assert state["lists"].keys() == then["lists"].keys()
        for kind in state["lists"]:
            assert set(self._rows(state, kind)) == set(self._rows(then, kind)), kind

    def _find(self, side, wanted):
        rows = side.get("payload_iovs", [])
        return [self._row_of(row) for row in rows if wanted in (row["id"], (row["major_iov"], row["minor_iov"]))]

    def _check_end(self, client, tag, state):
        """The end of the log is what the tables have."""
        nested = self._do(client, "GET", f"globalTag/{tag}")
        rows = {
            (one["name"], (iov["major_iov"], iov["minor_iov"])): iov["payload_url"]
            for one in nested["payload_lists"]
            for iov in one["payload_iov"]
        }
        assert rows == {place: content[0] for place, content in state["rows"].items()}
        light = self._do(client, "GET", f"globalTag/{tag}?light")
        assert light["payload_iov_count"] == len(rows)

    def _rows(self, state, kind):
        name = state["lists"].get(kind)
        return [
            Row(content[0], start, half_open_end(content[3], self._discrete))
            for (payload_list, start), content in state["rows"].items()
            if payload_list == name
        ]

    def _row_of(self, row):
        end = half_open_end((row["major_iov_end"], row["minor_iov_end"]), self._discrete)
        return Row(row["payload_url"], (row["major_iov"], row["minor_iov"]), end)

    # Tools

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
        end = wire_end(row.end, self._discrete)
        return {
            "payload_url": row.label,
            "checksum": "c",
            "major_iov": row.start[0],
            "minor_iov": row.start[1],
            "major_iov_end": end[0],
            "minor_iov_end": end[1],
        }

    def _attachment(self, tag, kind, iov_id, comment):
        return {"payload_list": self._lists[tag, kind], "piov_id": iov_id, "comment": comment}

    def _try(self, client, comment, *request):
        """The answer, or None where it was refused. What is acknowledged has to be in the log."""
        answer = self._do(client, *request, permitted=(200, 404, 409))
        # What changes nothing is not in the log.
        if "code" in answer or not answer.get("changed", True):
            return None
        if comment:
            with self._lock:
                self._acknowledged.add(comment)
        return answer

    def _do(self, client, method, path, body=None, headers=None, permitted=(200,)):
        status, answer = client.call(method, path, body, headers or {})
        self.statuses[status] += 1
        assert status in permitted, (method, path, status, answer)
        return answer
