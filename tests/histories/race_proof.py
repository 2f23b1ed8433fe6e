"""The proof that what writers left is what some order of their writes leaves.

The change log says in which order the writes took effect, and each change in it has to be what the oracle makes of that
write, from the state that the change before it had left.
"""

from tests.histories.oracle import Log, Request, Row, half_open_end, place_of, valid_payload
from tests.histories.writers import GRID


class RaceProof:
    """Compares a race that is over with the change log and the tables, by requests of a client."""

    def __init__(self, race, client):
        self._race, self._client = race, client

    def verify(self):
        """Hold every change that was made, in the order of the log, against the oracle; returns how many there were."""
        changes = []
        for tag in self._race.begins:
            pages = self._race.do(self._client, "GET", f"global-tags/{tag}/changes?page=1&page_size=1000")
            assert pages["total_pages"] == 1
            revisions = [change["revision"] for change in pages["results"]]
            assert revisions == list(range(len(revisions), 0, -1))
            changes += [
                self._race.do(self._client, "GET", f"global-tags/{tag}/changes/{revision}") for revision in revisions
            ]
        assert self._race.acknowledged <= {change["comment"] for change in changes}
        log, checked = Log(changes), 0
        for tag in self._race.begins:
            state, states = None, {}
            for change, before, state in log.steps(tag):
                states[change["revision"]] = state
                if change["action"] == "revert":
                    self._check_reversion(state, states[self._race.writes[change["comment"]].revision])
                    checked += 1
                elif change["comment"]:
                    self._check(tag, change, before, state)
                    checked += 1
                # Not if this change deleted it.
                if state:
                    self._check_past(tag, change["revision"], state)
            if state:
                self._check_end(tag, state)
        return checked

    def _check(self, tag, change, before, after):
        write = self._race.writes[change["comment"]]
        # By their places, because a reversion may have made a copy of such a row in the other list.
        taken = {place_of(row) for row in self._find(change["before"], write.gone)}
        for kind in self._race.types:
            request = Request(GRID, self._rows(before, kind, without=taken), protected=False)
            for row_tag, row_kind, row, since_only in write.rows:
                if (row_tag, row_kind) == (tag, kind):
                    [given] = [row] if row else map(self._row_of, self._find(change["after"], write.gone))
                    request.place(0, given, since_only)
            now = self._rows(after, kind)
            found = {moment: valid_payload(now, moment) for moment in GRID}
            assert found == request.v, (kind, write, change, before)

    def _check_past(self, tag, revision, state):
        """A lookup at each revision returns what the log says of it."""
        rows = {kind: self._rows(state, kind) for kind in self._race.types}
        for moment in GRID[revision % 5 :: 5]:
            valid = {kind: valid_payload(of_kind, moment) for kind, of_kind in rows.items()}
            expected = {kind: label for kind, label in valid.items() if label}
            assert self._race.look_up(self._client, tag, revision, moment) == expected, (tag, revision, moment)
            assert self._race.past.get((tag, revision, moment), expected) == expected

    def _check_reversion(self, state, then):
        assert state["lists"].keys() == then["lists"].keys()
        for kind in state["lists"]:
            assert set(self._rows(state, kind)) == set(self._rows(then, kind)), kind

    def _find(self, side, wanted):
        rows = side.get("payload_iovs", [])
        return [row for row in rows if wanted in (row["id"], (row["major_iov"], row["minor_iov"]))]

    def _check_end(self, tag, state):
        """The end of the log is what the tables have."""
        nested = self._race.do(self._client, "GET", f"globalTag/{tag}")
        rows = {
            (one["name"], (iov["major_iov"], iov["minor_iov"])): iov["payload_url"]
            for one in nested["payload_lists"]
            for iov in one["payload_iov"]
        }
        assert rows == {place: content[0] for place, content in state["rows"].items()}
        light = self._race.do(self._client, "GET", f"globalTag/{tag}?light")
        assert light["payload_iov_count"] == len(rows)

    def _rows(self, state, kind, without=()):
        name = state["lists"].get(kind)
        return [
            Row(content[0], start, half_open_end(content[3], self._race.discrete))
            for (payload_list, start), content in state["rows"].items()
            if payload_list == name and (payload_list, start) not in without
        ]

    def _row_of(self, row):
        end = half_open_end((row["major_iov_end"], row["minor_iov_end"]), self._race.discrete)
        return Row(row["payload_url"], (row["major_iov"], row["minor_iov"]), end)
