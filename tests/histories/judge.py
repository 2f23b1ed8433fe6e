"""The comparison of a history with the oracle: each write, each response, and at the end the change log."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

from django.conf import settings
from django.db import transaction

from cdb_rest.history.changes import read_change
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.lookup.queries import look_up_here
from cdb_rest.models import GlobalTag, GlobalTagChange, ListedPayloadIOV, PayloadList, PayloadListVersion
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import CdbError, OverlapError, TagFrozenError, TagLimitError, TagLockedError
from cdb_rest.rules.moment import Mode, Moment
from cdb_rest.strategies import implementations
from tests.histories.oracle import AFTER_ALL, LAST, Log, Request, Row, half_open_end, valid_payload, wire_end

# The numbers of steps, rejected writes and lookups in this process, for the tests.
played = Counter()


class Judge:
    """What all histories need: `grid` has the moments in which all IOVs begin and end, `discrete` says that ends are
    inclusive.
    """

    grid: list
    discrete: bool

    def __init__(self):
        super().__init__()
        self._labels = 0
        self._seen = {}
        self._last = {}
        self._answered = {}
        self._times = {}
        self._requests = []

    def write(self, write, expected, outcome=None, effect=None):
        """Do it, and hold what comes of it against what should: an error and nothing else, or v of the lists in `outcome`
        and no change of any other list, and whatever `effect` looks for.
        """
        before = self._last
        played["steps"] += 1
        try:
            with transaction.atomic():
                result = write()
        except CdbError as error:
            played[type(error).__name__] += 1
            assert expected and isinstance(error, expected), (type(error), error, expected)
            assert self.state() == before
            return None
        assert not expected, expected
        after = self._last = self.state()
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old and new:
                raised = new["revision"] - old["revision"]
                # A row may take the place of one just like it.
                assert raised in (0, 1) and raised >= (_contents(new) != _contents(old)), name
        self._check_lists(before, after, outcome or {})
        assert effect is None or effect(), "it did not do what it should"
        self.check()
        return result

    def _check_lists(self, before, after, outcome):
        """The lists in `outcome`, by id or by tag and type, answer like that, and all others are as they were."""
        named = set()
        for key, v in outcome.items():
            of_list = (
                {"id": key} if isinstance(key, int) else {"global_tag__name": key[0], "payload_type__name": key[1]}
            )
            payload_list = PayloadList.objects.get(**of_list)
            named.add(payload_list.name)
            rows = self.rows_of(payload_list)
            assert {moment: valid_payload(rows, moment) for moment in self.grid} == v
        was, now = _rows_by_list(before), _rows_by_list(after)
        for name in (was.keys() & now.keys()) - named:
            assert now[name] == was[name], name

    def check(self):
        """The invariants of all lists, and every way to look up."""
        for one in PayloadList.objects.all():
            rows = sorted(self.rows_of(one), key=lambda row: row.start)
            assert all(row.start < row.end for row in rows)
            for row, following in pairwise(rows):
                assert row.start < following.start
                assert row.is_open or row.end <= following.start
        for name, state in self._last.items():
            self._seen[name, state["revision"]] = {key: state[key] for key in ("status", "lists", "rows")}
        for tag in GlobalTag.objects.all():
            self.answers(tag)

    def answers(self, tag):
        """What the tag answers at each moment of the grid and just before it, held against the definition."""
        lists = {one.payload_type.name: self.rows_of(one) for one in tag.payload_lists.select_related("payload_type")}
        answers = []
        for number, grid_moment in enumerate(self.grid):
            for moment in {grid_moment, wire_end(grid_moment, True) if number else grid_moment}:
                query = self._question(tag, moment, strict=True)
                answer = {row[0]: row[1] for row in json.loads(self._remember(query, tag.revision))}
                valid = {kind: valid_payload(rows, moment) for kind, rows in lists.items()}
                assert answer == {kind: label for kind, label in valid.items() if label}, moment
                answers.append(answer)
        played["lookups"] += len(answers)
        for strict in (True, False):
            query = self._question(tag, self.grid[self._labels % len(self.grid)], strict=strict)
            rows = [tuple(row) for row in json.loads(self._remember(query, tag.revision))]
            assert implementations.order_by(query) == rows
            assert implementations.maximum(query) == rows
        return answers

    def _remember(self, query, revision):
        """The present response, which is noted under the revision of the tag; a response for the same revision is the same."""
        text = implementations.look_up_by_function(query)
        key = (query, revision)
        if key not in self._answered:
            # Windows take several times as long as lookups, so only some are compared.
            has_window = len(self._answered) % 4 == 0
            window = look_up_here(query, with_window=True).window if has_window else None
            self._answered[key] = (text, window, self._created(query.tag, revision))
        assert self._answered[key][0] == text
        return text

    def _created(self, name, revision):
        if (name, revision) not in self._times:
            changes = GlobalTagChange.objects.filter(global_tag=name, revision=revision)
            self._times[name, revision] = changes.values_list("created", flat=True).get()
        return self._times[name, revision]

    def answers_like(self, tag, revision, now):
        """Whether the tag `now` answers everything that `tag` was asked at a revision, and as it did then."""
        for (query, number), (text, window, _) in self._answered.items():
            if (query.tag, number) == (tag, revision):
                found = look_up_here(replace(query, tag=now), with_window=window is not None)
                assert (found.text, found.window) == (text, window), query
                played["answers of the past"] += 1
        return True

    def check_past(self):
        """Everything that was ever answered is answered again, by revision and by time."""
        for (query, revision), (text, window, created) in self._answered.items():
            by_revision = self.look_up_past(query, AsOf(revision=revision), window)
            assert (by_revision.text, by_revision.window) == (text, window), (query, revision)
            assert by_revision.state.version.startswith(f"{revision}-")
            played["lookups in the past"] += 1
            # Only some by time, too: it finds the same revision.
            if window is not None:
                assert look_up_here(replace(query, as_of=AsOf(time=created))).text == text, (query, created)
                played["lookups in the past"] += 1

    @staticmethod
    def look_up_past(query, as_of, window):
        """The lookup in the past, with its window if one is given to compare it with."""
        return look_up_here(replace(query, as_of=as_of), with_window=window is not None)

    def check_log(self):
        """From the log alone, each tag as it was at each revision."""
        log = Log(read_log())
        for (name, revision), seen in self._seen.items():
            assert log.rebuild(name, revision) == seen, (name, revision)

    # Reading

    def state(self):
        """Everything that a tag answers from, by tag."""
        state = {}
        for tag in GlobalTag.objects.select_related("status"):
            iovs = ListedPayloadIOV.objects.filter(payload_list__global_tag=tag).values_list(
                "payload_list__name",
                "major_iov",
                "minor_iov",
                "payload_url",
                "checksum",
                "size",
                "major_iov_end",
                "minor_iov_end",
                "extra",
            )
            state[tag.name] = {
                "revision": tag.revision,
                "status": tag.status.name,
                "lists": dict(tag.payload_lists.values_list("payload_type__name", "name")),
                "rows": {
                    (name, (major, minor)): (url, checksum, size, (major_end, minor_end), revision)
                    for name, major, minor, url, checksum, size, major_end, minor_end, revision in iovs
                },
            }
        return state

    def _question(self, tag, moment, *, strict):
        return LookupQuery(tag.name, Moment(*moment), strict, False, Mode(settings.CDB_IOV_MODE))

    def rows_of(self, payload_list):
        return self.rows(ListedPayloadIOV.objects.filter(payload_list=payload_list))

    def v(self, rows):
        """The valid payload at each moment of the grid."""
        return {moment: valid_payload(rows, moment) for moment in self.grid}

    def request(self, payload_list):
        """What a write may do to a list."""
        limit = closed_until(payload_list.global_tag)
        rows = self.rows_of(payload_list)
        return Request(
            self.grid, rows, is_protected(payload_list), limit, is_frozen(payload_list), discrete=self.discrete
        )

    def rows_by_type(self, seen):
        """The rows of a tag by payload type, from a state that was seen."""
        return {
            kind: [
                Row(content[0], start, half_open_end(content[3], self.discrete))
                for (of_list, start), content in seen["rows"].items()
                if of_list == name
            ]
            for kind, name in seen["lists"].items()
        }

    def rows(self, iovs):
        return [
            Row(
                iov.payload_url,
                (iov.major_iov, iov.minor_iov),
                half_open_end((iov.major_iov_end, iov.minor_iov_end), self.discrete),
            )
            for iov in iovs
        ]

    @staticmethod
    def pick(model, number, **selection):
        # A row is listed once for each list that shares it.
        order = ("id", "payload_list") if model is ListedPayloadIOV else ("id",)
        found = list(model.objects.filter(**selection).order_by(*order))
        return found[number % len(found)] if found else None

    def label(self):
        self._labels += 1
        return f"payload {self._labels}"

    def interval(self, begin, length):
        """Start and half-open end, by numbers of moments of the grid; the longest are open. None if it can't be said."""
        first = begin % len(self.grid)
        last = first + 1 + length % 6
        start = self.grid[first]
        end = self.grid[last] if last < len(self.grid) and length != 5 else AFTER_ALL
        return None if end == (LAST, LAST) and not self.discrete else (start, end)

    def columns(self, start, end):
        end = wire_end(end, self.discrete)
        return {"major_iov": start[0], "minor_iov": start[1], "major_iov_end": end[0], "minor_iov_end": end[1]}


def read_log():
    """All changes with what they removed and added, as the API has them."""
    for change in GlobalTagChange.objects.order_by("id"):
        before, after, groups = read_change(change)
        for side, rows in groups:
            (before if side == "before" else after)["payload_iovs"] = list(rows)
        yield {
            "global_tag": change.global_tag,
            "revision": change.revision,
            "action": change.action,
            "before": before,
            "after": after,
        }


def _contents(state):
    return {key: value for key, value in state.items() if key != "revision"}


def _rows_by_list(state):
    """The rows of each list that is in some tag."""
    found = {name: {} for of_tag in state.values() for name in of_tag["lists"].values()}
    for of_tag in state.values():
        for (name, start), content in of_tag["rows"].items():
            found[name][start] = content
    return found


def refusal(tag, *statuses):
    """The error to expect if the tag has one of these statuses."""
    if tag is None or tag.status.name not in statuses:
        return None
    return TagFrozenError if tag.status.name == "frozen" else TagLockedError


def is_frozen(payload_list):
    return payload_list.global_tag is not None and payload_list.global_tag.status.name == "frozen"


def closed_until(tag):
    """The limit of a tag as a plain pair; None if it has none."""
    return tag and tag.closed and tuple(tag.closed)


def changes_closed(tag, before, after):
    """Whether something else is valid before the limit of the tag: `before` and `after` are v at the moments of the grid."""
    limit = closed_until(tag)
    return bool(limit) and any(moment < limit and before[moment] != after[moment] for moment in before)


def errors_of(requests):
    """The errors that several requests may get, of which the first wrong row decides; empty if there is none."""
    kinds = {"frozen": TagFrozenError, "limit": TagLimitError}
    found = {kinds[name] for request in requests for name in request.errors}
    return found | ({OverlapError} if any(request.refused for request in requests) else set())


def is_shared(iov):
    """Whether a payload list shares a stored row with the one that has it, now or in one of its versions."""
    shared = {"base_list_id": iov.payload_list_id, "base_version__gte": iov.added_in}
    return any(model.objects.filter(**shared).exists() for model in (PayloadList, PayloadListVersion))


def is_protected(payload_list):
    return payload_list.global_tag is not None and payload_list.global_tag.status.name != "unlocked"
