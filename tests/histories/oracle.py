"""The judge of histories: the valid payload of a list as a plain function, and the change log played again.

Nothing of the service is used here: not its intervals, not its order of moments, not its translation of discrete ends.
"""

from dataclasses import dataclass, field

LAST = 2**63 - 1
AFTER_ALL = (2**63, 0)


def half_open_end(end, discrete):
    """The first moment that is over, for an end as it stands in a row."""
    major, minor = end
    if end == (LAST, LAST):
        return AFTER_ALL
    if not discrete:
        return end
    return (major, minor + 1) if minor < LAST else (major + 1, 0)


def wire_end(end, discrete):
    """The other way around; `end` is after some moment, and, unless discrete, not the last one."""
    major, minor = end
    if end == AFTER_ALL:
        return (LAST, LAST)
    if not discrete:
        return end
    return (major, minor - 1) if minor else (major - 1, LAST)


@dataclass(frozen=True)
class Row:
    """A row of a list; `end` is half-open."""

    label: str
    start: tuple
    end: tuple

    @property
    def is_open(self):
        return self.end == AFTER_ALL


def valid_payload(rows, moment):
    """v(m) by its definition: the row with the latest start, if it is not over."""
    started = [row for row in rows if row.start <= moment]
    latest = max(started, key=lambda row: row.start, default=None)
    return latest.label if latest and moment < latest.end else None


@dataclass
class Request:
    """What several new rows make of a list, in the order given: v at each moment of a grid in which all of them begin and
    end. `refused` are the rows that a protected tag does not take.
    """

    grid: list
    rows: list
    protected: bool
    closed: tuple | None = None
    frozen: bool = False
    discrete: bool = False
    v: dict = field(init=False)
    refused: list = field(default_factory=list)
    errors: set = field(default_factory=set)
    changes_nothing: bool = True

    def __post_init__(self):
        self.v = {moment: valid_payload(self.rows, moment) for moment in self.grid}
        self.before = dict(self.v)
        self.starts = {row.start for row in self.rows}
        last = max(self.rows, key=lambda row: row.start, default=None)
        self.running = last if last and self.is_online(last) else None

    def is_online(self, row):
        """Whether the row is open, or says so by the largest minor number."""
        return row.is_open or (not self.discrete and row.end[1] == LAST)

    def place(self, number, new, since_only):
        until = min((start for start in self.starts if start > new.start), default=AFTER_ALL) if since_only else new.end
        covered = [moment for moment in self.grid if new.start <= moment < until]
        if all(self.v[moment] == new.label for moment in covered):
            return
        self.changes_nothing = False
        if self.frozen:
            self.errors.add("frozen")
        if self.closed and any(moment < self.closed and self.v[moment] != new.label for moment in covered):
            self.errors.add("limit")
        disturbed = {self.before[moment] for moment in covered} - {None}
        online = self.protected and self.running and self.is_online(new) and new.start > self.running.start
        if self.protected and disturbed and not (online and disturbed <= {self.running.label}):
            self.refused.append(number)
            return
        if online:
            ended = {self.v[moment] for moment in covered}
            self.v |= {moment: None for moment in self.grid if moment >= until and self.v[moment] in ended}
        if not since_only:
            self.starts = {start for start in self.starts if not new.start <= start < until}
            if self.v.get(until) is not None:
                self.starts.add(until)
        self.starts.add(new.start)
        self.v |= dict.fromkeys(covered, new.label)


class Log:
    """The change log, played again from its beginning."""

    def __init__(self, changes):
        self._changes = {}
        for change in sorted(changes, key=lambda change: change["revision"]):
            self._changes.setdefault(change["global_tag"], []).append(change)

    def rebuild(self, tag, revision):
        """Status, lists by type and rows by list and start of a tag at a revision; None where it did not exist."""
        state = None
        for change in self._changes[tag]:
            if change["revision"] > revision:
                break
            state = self._apply(state, change)
        return state

    def steps(self, tag):
        """Each change of a tag with its state before and after."""
        state = None
        for change in self._changes[tag]:
            after = self._apply(state, change)
            yield change, state, after
            state = after

    def _apply(self, state, change):
        before, after = change["before"], change["after"]
        is_deleted = change["action"] == "delete"
        state = state or {"status": None, "lists": {}, "rows": {}}
        assert before.get("status") == (state["status"] if "status" in after or is_deleted else None)
        rows = dict(state["rows"])
        lists = dict(state["lists"])
        for row in before.get("payload_iovs", []):
            assert rows.pop(place_of(row)) == content_of(row)
        for kind, name in before.get("payload_lists", {}).items():
            assert lists.pop(kind) == name
        for kind, name in after.get("payload_lists", {}).items():
            assert kind not in lists
            lists[kind] = name
        for row in after.get("payload_iovs", []):
            assert place_of(row) not in rows
            rows[place_of(row)] = content_of(row)
        if "clone_of" in after:
            source = self.rebuild(after["clone_of"]["global_tag"], after["clone_of"]["revision"])
            kinds = {name: kind for kind, name in source["lists"].items()}
            assert rows == {(lists[kinds[name]], start): content for (name, start), content in source["rows"].items()}
        if is_deleted:
            assert not (rows or lists or after)
            return None
        return {"status": after.get("status", state["status"]), "lists": lists, "rows": rows}


def place_of(row):
    return row["payload_list"], (row["major_iov"], row["minor_iov"])


def content_of(row):
    return (
        row["payload_url"],
        row["checksum"],
        row["size"],
        (row["major_iov_end"], row["minor_iov_end"]),
        row["revision"],
    )
