"""Random histories of every write there is, against the oracle after each step."""

import contextlib
import json
from collections import Counter
from itertools import pairwise

from django.conf import settings
from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from cdb_rest import named_sql
from cdb_rest.domain.errors import (
    CdbError,
    InvalidInputError,
    NameTakenError,
    OverlapError,
    PayloadListNotEmptyError,
    StatusChangeRefusedError,
    TagFrozenError,
    TagLockedError,
)
from cdb_rest.domain.moment import Mode, Moment
from cdb_rest.lookup import lateral, orm
from cdb_rest.lookup.question import Question
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList, PayloadType
from cdb_rest.services import bulk, global_tags, insertion, payload_iovs, payload_lists
from cdb_rest.services.counts import find_wrong_counts
from tests.builders import make_statuses
from tests.histories.oracle import AFTER_ALL, LAST, Log, Request, Row, half_open_end, valid_payload, wire_end

TAGS = ["a", "b", "c"]
TYPES = ["Gain", "Noise"]
NUMBER = st.integers(0, 11)
# Where 32 bits, 64 bits or a rounded decimal would give way; and a small world, where moments meet often.
FULL_RANGE = [0, 1, 2, 10**9 + 1, 1_700_000_000, 2**31 - 1, 2**31, 2**53 + 1, 10**18, LAST - 1, LAST]
SMALL_RANGE = [0, 1, 2]

# What the runs of this process have seen, for whoever asks: steps, writes and refusals by kind.
played = Counter()


class Histories(RuleBasedStateMachine):
    """Writes to up to three tags. Subclasses say from which numbers moments are made, and whether ends are inclusive."""

    numbers: list
    discrete: bool

    def __init__(self):
        super().__init__()
        self._transaction = contextlib.ExitStack()
        self._transaction.enter_context(transaction.atomic())
        self._labels = 0
        self._seen = {}
        self._last = {}
        make_statuses()
        for name in TYPES:
            PayloadType.objects.get_or_create(name=name)

    def teardown(self):
        try:
            self._check_log()
            with connection.cursor() as cursor:
                cursor.execute(named_sql.load("carry_counts"))
            assert find_wrong_counts() == []
        finally:
            transaction.set_rollback(True)
            self._transaction.close()

    @initialize(data=st.data())
    def world(self, data):
        """A grid of moments in which all IOVs begin and end, and two tags to begin with."""
        majors = st.just(0) if data.draw(st.booleans()) and len(self.numbers) > 3 else st.sampled_from(self.numbers)
        moments = st.tuples(majors, st.sampled_from(self.numbers))
        first = [(0, 0), (LAST, LAST)]
        self.grid = sorted({*first, *data.draw(st.lists(moments, min_size=4, max_size=10, unique=True))})
        for name in TAGS[:2]:
            self.make_tag(name)
            for kind in TYPES:
                made = payload_lists.create_payload_list(payload_type=kind)
                payload_lists.attach_payload_list(global_tag=name, payload_list=made.name)
            self._last = self._state()
        self._check()

    # Writes

    @rule(name=st.sampled_from(TAGS))
    def make_tag(self, name):
        exists = GlobalTag.objects.filter(name=name).exists()
        self._write(
            lambda: global_tags.create_global_tag(name=name, status="unlocked"), NameTakenError if exists else None
        )

    @rule(kind=st.sampled_from(TYPES), tag=NUMBER)
    def make_list_and_attach_it(self, kind, tag):
        made = payload_lists.create_payload_list(payload_type=kind)
        self._attach_list(made, self._pick(GlobalTag, tag))

    @rule(number=NUMBER, tag=NUMBER)
    def attach_some_list(self, number, tag):
        self._attach_list(self._pick(PayloadList, number), self._pick(GlobalTag, tag))

    def _attach_list(self, one, tag):
        if not (one and tag):
            return
        if one.global_tag == tag:
            expected = None
        else:
            replaces = PayloadList.objects.filter(global_tag=tag, payload_type=one.payload_type).exists()
            expected = refusal(one.global_tag, "frozen", "locked") or refusal(
                tag, "frozen", *(["locked"] if replaces else [])
            )
        self._write(lambda: payload_lists.attach_payload_list(global_tag=tag.name, payload_list=one.name), expected)

    @rule(number=NUMBER)
    def delete_some_list(self, number):
        one = self._pick(PayloadList, number)
        if one:
            expected = refusal(one.global_tag, "frozen", "locked")
            expected = expected or (PayloadListNotEmptyError if one.payload_iovs.exists() else None)
            self._write(lambda: payload_lists.delete_payload_list(name=one.name), expected)

    @rule(number=NUMBER, begin=NUMBER, length=NUMBER)
    def create_and_attach(self, number, begin, length):
        target = self._pick(PayloadList, number)
        interval = self._interval(begin, length)
        if target and interval:
            columns = self._columns(*interval)
            iov = payload_iovs.create_payload_iov(payload_url=self._label(), checksum="c", size=1, **columns)
            self._attach(iov, target)

    @rule(number=NUMBER, iov=NUMBER)
    def attach_what_was_detached(self, number, iov):
        self._attach(self._pick(PayloadIOV, iov, payload_list=None), self._pick(PayloadList, number))

    @rule(number=NUMBER, iov=NUMBER)
    def steal(self, number, iov):
        self._attach(self._pick(PayloadIOV, iov, payload_list__isnull=False), self._pick(PayloadList, number))

    def _attach(self, iov, target):
        if not (iov and target):
            return None
        source = iov.payload_list
        if source == target:
            return self._write(lambda: payload_iovs.attach_payload_iov(payload_list=target.name, iov_id=iov.id), None)
        expected = source and refusal(source.global_tag, "frozen", "locked")
        expected = expected or refusal(target.global_tag, "frozen")
        new = self._rows([iov])[0]
        request = Request(self.grid, self._rows_of(target), is_protected(target))
        request.place(0, new, since_only=False)
        expected = expected or (OverlapError if request.refused else None)
        outcome = {target.id: request.v}
        if source:
            left = self._rows(PayloadIOV.objects.filter(payload_list=source).exclude(id=iov.id))
            outcome[source.id] = {moment: valid_payload(left, moment) for moment in self.grid}
        return self._write(
            lambda: payload_iovs.attach_payload_iov(payload_list=target.name, iov_id=iov.id), expected, outcome
        )

    @rule(rows=st.lists(st.tuples(NUMBER, NUMBER, NUMBER, st.booleans()), max_size=5))
    def insert_in_bulk(self, rows):
        requests, starts, wanted, expected = {}, {}, [], []
        for number, begin, length, is_open in rows:
            target = self._pick(PayloadList, number)
            interval = self._interval(begin, length)
            if not (target and interval):
                return
            start, end = interval[0], AFTER_ALL if is_open else interval[1]
            label = self._label()
            wanted.append({"payload_url": label, "payload_list": target.name} | self._columns(start, end))
            if target.id not in requests:
                requests[target.id] = Request(self.grid, self._rows_of(target), is_protected(target))
                starts[target.id] = [row.start for row in requests[target.id].rows]
            expected.append((target, starts[target.id], Row(label, start, end)))
        self._write(lambda: bulk.insert_payload_iovs(rows=wanted), *self._bulk_outcome(expected, requests))

    @staticmethod
    def _bulk_outcome(expected, requests):
        """The error to expect, and otherwise the function of each list."""
        frozen = [refusal(target.global_tag, "frozen") for target, _, _ in expected]
        if any(frozen):
            return next(error for error in frozen if error), {}
        if len({(target.id, row.start) for target, _, row in expected}) < len(expected):
            return InvalidInputError, {}
        for number, (target, starts, row) in enumerate(expected):
            if row.start in starts:
                requests[target.id].refused.append(number)
            else:
                requests[target.id].place(number, row, since_only=row.is_open)
        refused = any(request.refused for request in requests.values())
        return OverlapError if refused else None, {list_id: request.v for list_id, request in requests.items()}

    @rule(
        rows=st.lists(st.tuples(NUMBER, st.sampled_from(TYPES), NUMBER, NUMBER, st.sampled_from("oncc")), max_size=4),
        try_first=st.booleans(),
    )
    def insert(self, rows, try_first):
        requests, wanted, tags = {}, [], []
        for number, kind, begin, length, until in rows:
            tag, interval = self._pick(GlobalTag, number), self._interval(begin, length)
            if not (tag and interval):
                return
            row = Row(self._label(), interval[0], interval[1] if until == "c" else AFTER_ALL)
            wanted.append(
                {"global_tag": tag.name, "payload_type": kind, "payload_url": row.label, "since_only": until == "n"}
                | self._columns(row.start, row.end)
            )
            tags.append(tag)
            if (tag.name, kind) not in requests:
                target = PayloadList.objects.filter(global_tag=tag, payload_type__name=kind).first()
                stored = self._rows_of(target) if target else []
                requests[tag.name, kind] = Request(self.grid, stored, tag.status.name != "unlocked")
            requests[tag.name, kind].place(len(wanted), row, since_only=until == "n")
        frozen = next((error for error in (refusal(tag, "frozen") for tag in tags) if error), None)
        refused = OverlapError if any(request.refused for request in requests.values()) else None
        outcome = {key: request.v for key, request in requests.items()}
        if try_first:
            with contextlib.suppress(OverlapError, TagFrozenError), transaction.atomic():
                insertion.insert_payloads(rows=[dict(row) for row in wanted], dry_run=True)
                assert not (frozen or refused)
            assert self._state() == self._last
        self._write(lambda: insertion.insert_payloads(rows=wanted), frozen or refused, outcome)

    @rule(number=NUMBER)
    def delete_some_iov(self, number):
        iov = self._pick(PayloadIOV, number, payload_list__global_tag__isnull=False)
        if not iov:
            return
        source = iov.payload_list
        left = self._rows(PayloadIOV.objects.filter(payload_list=source).exclude(id=iov.id))
        self._write(
            lambda: payload_iovs.delete_payload_iov(
                global_tag=source.global_tag.name,
                payload_type=source.payload_type.name,
                start=Moment(iov.major_iov, iov.minor_iov),
                end=Moment(iov.major_iov_end, iov.minor_iov_end),
            ),
            refusal(source.global_tag, "frozen", "locked"),
            {source.id: {moment: valid_payload(left, moment) for moment in self.grid}},
        )

    @rule(number=NUMBER, status=st.sampled_from(["unlocked", "unlocked", "locked", "frozen"]))
    def change_status(self, number, status):
        tag = self._pick(GlobalTag, number)
        # Frozen tags are dead ends for a history, so there are few of them.
        if tag and not (status == "frozen" and number % 4):
            self._write(
                lambda: global_tags.change_status(name=tag.name, status=status),
                TagFrozenError if tag.status.name == "frozen" else None,
            )

    @rule(number=NUMBER, name=st.sampled_from(TAGS))
    def clone(self, number, name):
        tag = self._pick(GlobalTag, number)
        if tag:
            exists = GlobalTag.objects.filter(name=name).exists()
            answers = self._answers(tag)
            made = self._write(
                lambda: global_tags.clone_global_tag(source=tag.name, target=name), NameTakenError if exists else None
            )
            assert made is None or self._answers(made) == answers

    @rule(number=NUMBER)
    def delete_some_tag(self, number):
        tag = self._pick(GlobalTag, number)
        if tag:
            self._write(lambda: global_tags.delete_global_tag(name=tag.name), refusal(tag, "frozen", "locked"))

    # Judging

    def _write(self, write, expected, outcome=None):
        """Do it, and hold what comes of it against what should: an error and nothing else, or v of the lists named."""
        before = self._last
        played["steps"] += 1
        try:
            with transaction.atomic():
                result = write()
        except (CdbError, StatusChangeRefusedError) as error:
            played["refused"] += 1
            assert expected is not None and isinstance(error, expected), (type(error), error, expected)
            assert self._state() == before
            return None
        assert expected is None, expected
        after = self._last = self._state()
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old and new:
                assert new["revision"] == old["revision"] + (new != old), name
        for key, v in (outcome or {}).items():
            of_list = (
                {"id": key} if isinstance(key, int) else {"global_tag__name": key[0], "payload_type__name": key[1]}
            )
            rows = self._rows_of(PayloadList.objects.get(**of_list))
            assert {moment: valid_payload(rows, moment) for moment in self.grid} == v
        self._check()
        return result

    def _check(self):
        """The invariants of all lists, and every way to look up."""
        for one in PayloadList.objects.all():
            rows = sorted(self._rows_of(one), key=lambda row: row.start)
            assert all(row.start < row.end for row in rows)
            for row, following in pairwise(rows):
                assert row.start < following.start
                assert row.is_open or row.end <= following.start
        for name, state in self._last.items():
            self._seen[name, state["revision"]] = {key: state[key] for key in ("status", "lists", "rows")}
        for tag in GlobalTag.objects.all():
            self._answers(tag)

    def _answers(self, tag):
        """What the tag answers at each moment of the grid and just before it, held against the definition."""
        lists = {one.payload_type.name: self._rows_of(one) for one in tag.payload_lists.select_related("payload_type")}
        answers = []
        for number, grid_moment in enumerate(self.grid):
            for moment in {grid_moment, wire_end(grid_moment, True) if number else grid_moment}:
                question = self._question(tag, moment, strict=True)
                answer = {row[0]: row[1] for row in json.loads(lateral.answer(question))}
                valid = {kind: valid_payload(rows, moment) for kind, rows in lists.items()}
                assert answer == {kind: label for kind, label in valid.items() if label}, moment
                answers.append(answer)
        played["lookups"] += len(answers)
        for strict in (True, False):
            question = self._question(tag, self.grid[self._labels % len(self.grid)], strict=strict)
            own = [tuple(row) for row in json.loads(lateral.answer(question))]
            assert orm.order_by(question) == own
            assert orm.maximum(question) == own
        return answers

    def _check_log(self):
        """From the log alone, each tag as it was at each revision."""
        log = Log(GlobalTagChange.objects.values("global_tag", "revision", "action", "before", "after"))
        for (name, revision), seen in self._seen.items():
            assert log.rebuild(name, revision) == seen, (name, revision)

    # Reading

    def _state(self):
        """Everything that a tag answers from, by tag."""
        state = {}
        for tag in GlobalTag.objects.select_related("status"):
            iovs = PayloadIOV.objects.filter(payload_list__global_tag=tag).values_list(
                "payload_list__name", "major_iov", "minor_iov",
                "payload_url", "checksum", "size", "major_iov_end", "minor_iov_end", "extra",
            )  # fmt: skip
            state[tag.name] = {
                "revision": tag.revision,
                "status": tag.status.name,
                "lists": PayloadList.objects.names_by_type(tag.name),
                "rows": {
                    (name, (major, minor)): (url, checksum, size, (major_end, minor_end), revision)
                    for name, major, minor, url, checksum, size, major_end, minor_end, revision in iovs
                },
            }
        return state

    def _question(self, tag, moment, *, strict):
        return Question(tag.name, Moment(*moment), strict, False, Mode(settings.CDB_IOV_MODE))

    def _rows_of(self, payload_list):
        return self._rows(PayloadIOV.objects.filter(payload_list=payload_list))

    def _rows(self, iovs):
        return [
            Row(
                iov.payload_url,
                (iov.major_iov, iov.minor_iov),
                half_open_end((iov.major_iov_end, iov.minor_iov_end), self.discrete),
            )
            for iov in iovs
        ]

    @staticmethod
    def _pick(model, number, **selection):
        found = list(model.objects.filter(**selection).order_by("id"))
        return found[number % len(found)] if found else None

    def _label(self):
        self._labels += 1
        return f"payload {self._labels}"

    def _interval(self, begin, length):
        """Start and half-open end, by numbers of moments of the grid; the longest are open. None if it can't be said."""
        first = begin % len(self.grid)
        last = first + 1 + length % 6
        start = self.grid[first]
        end = self.grid[last] if last < len(self.grid) and length != 5 else AFTER_ALL
        return None if end == (LAST, LAST) and not self.discrete else (start, end)

    def _columns(self, start, end):
        end = wire_end(end, self.discrete)
        return {"major_iov": start[0], "minor_iov": start[1], "major_iov_end": end[0], "minor_iov_end": end[1]}


def refusal(tag, *statuses):
    """The error to expect if the tag has one of these statuses."""
    if tag is None or tag.status.name not in statuses:
        return None
    return TagFrozenError if tag.status.name == "frozen" else TagLockedError


def is_protected(payload_list):
    return payload_list.global_tag is not None and payload_list.global_tag.status.name != "unlocked"


def machine(numbers, discrete):
    """The machine for one world."""
    return type("Histories", (Histories,), {"numbers": numbers, "discrete": discrete})


WORLDS = {
    f"{extent}-{mode}": (machine(numbers, mode == "discrete"), mode)
    for extent, numbers in {"small": SMALL_RANGE, "full": FULL_RANGE}.items()
    for mode in ("continuous", "discrete")
}
