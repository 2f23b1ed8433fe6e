"""Random histories of every write there is, against the oracle after each step."""

import contextlib

from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from cdb_rest import named_sql
from cdb_rest.domain.errors import (
    InvalidInputError,
    NameTakenError,
    OverlapError,
    PayloadListNotEmptyError,
    TagFrozenError,
    TagLockedError,
)
from cdb_rest.domain.moment import Moment
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.services import bulk, global_tags, insertion, payload_iovs, payload_lists
from cdb_rest.services.counts import find_wrong_counts
from tests.builders import make_statuses
from tests.histories.judge import Judge
from tests.histories.oracle import AFTER_ALL, LAST, Request, Row, valid_payload

TAGS = ["a", "b", "c"]
TYPES = ["Gain", "Noise"]
NUMBER = st.integers(0, 11)
# Where 32 bits, 64 bits or a rounded decimal would give way; and a small world, where moments meet often.
FULL_RANGE = [0, 1, 2, 10**9 + 1, 1_700_000_000, 2**31 - 1, 2**31, 2**53 + 1, 10**18, LAST - 1, LAST]
SMALL_RANGE = [0, 1, 2]


class Histories(Judge, RuleBasedStateMachine):
    """Writes to up to three tags. Subclasses say from which numbers moments are made, and whether ends are inclusive."""

    numbers: list
    discrete: bool

    def __init__(self):
        super().__init__()
        self._transaction = contextlib.ExitStack()
        self._transaction.enter_context(transaction.atomic())
        make_statuses()
        for name in TYPES:
            PayloadType.objects.get_or_create(name=name)

    def teardown(self):
        try:
            self.check_log()
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
            self._last = self.state()
        self.check()

    @rule(name=st.sampled_from(TAGS))
    def make_tag(self, name):
        exists = GlobalTag.objects.filter(name=name).exists()
        self.write(
            lambda: global_tags.create_global_tag(name=name, status="unlocked"),
            NameTakenError if exists else None,
            effect=lambda: self.state()[name]["status"] == "unlocked",
        )

    @rule(kind=st.sampled_from(TYPES), tag=NUMBER)
    def make_list_and_attach_it(self, kind, tag):
        made = payload_lists.create_payload_list(payload_type=kind)
        self._attach_list(made, self.pick(GlobalTag, tag))

    @rule(number=NUMBER, tag=NUMBER)
    def attach_some_list(self, number, tag):
        self._attach_list(self.pick(PayloadList, number), self.pick(GlobalTag, tag))

    def _attach_list(self, one, tag):
        if not (one and tag):
            return
        expected, before = None, self._last
        if one.global_tag != tag:
            replaces = PayloadList.objects.filter(global_tag=tag, payload_type=one.payload_type).exists()
            expected = refusal(one.global_tag, "frozen", "locked") or refusal(
                tag, "frozen", *(["locked"] if replaces else [])
            )
        self.write(
            lambda: payload_lists.attach_payload_list(global_tag=tag.name, payload_list=one.name),
            expected,
            effect=lambda: (
                self._last == before
                if one.global_tag == tag
                else self._last[tag.name]["lists"][one.payload_type.name] == one.name
            ),
        )

    @rule(number=NUMBER)
    def delete_some_list(self, number):
        one = self.pick(PayloadList, number)
        if one:
            expected = refusal(one.global_tag, "frozen", "locked")
            expected = expected or (PayloadListNotEmptyError if one.payload_iovs.exists() else None)
            self.write(
                lambda: payload_lists.delete_payload_list(name=one.name),
                expected,
                effect=lambda: not PayloadList.objects.filter(name=one.name).exists(),
            )

    @rule(number=NUMBER, begin=NUMBER, length=NUMBER)
    def create_and_attach(self, number, begin, length):
        target = self.pick(PayloadList, number)
        interval = self.interval(begin, length)
        if target and interval:
            columns = self.columns(*interval)
            iov = payload_iovs.create_payload_iov(payload_url=self.label(), checksum="c", size=1, **columns)
            self._attach(iov, target)

    @rule(number=NUMBER, iov=NUMBER)
    def attach_what_was_detached(self, number, iov):
        self._attach(self.pick(PayloadIOV, iov, payload_list=None), self.pick(PayloadList, number))

    @rule(number=NUMBER, iov=NUMBER)
    def steal(self, number, iov):
        self._attach(self.pick(PayloadIOV, iov, payload_list__isnull=False), self.pick(PayloadList, number))

    def _attach(self, iov, target):
        if not (iov and target):
            return None
        source = iov.payload_list
        if source == target:
            before = self._last
            return self.write(
                lambda: payload_iovs.attach_payload_iov(payload_list=target.name, iov_id=iov.id),
                None,
                effect=lambda: self._last == before,
            )
        expected = source and refusal(source.global_tag, "frozen", "locked")
        expected = expected or refusal(target.global_tag, "frozen")
        new = self.rows([iov])[0]
        request = Request(self.grid, self.rows_of(target), is_protected(target))
        request.place(0, new, since_only=False)
        expected = expected or (OverlapError if request.refused else None)
        outcome = {target.id: request.v}
        if source:
            left = self.rows(PayloadIOV.objects.filter(payload_list=source).exclude(id=iov.id))
            outcome[source.id] = {moment: valid_payload(left, moment) for moment in self.grid}
        return self.write(
            lambda: payload_iovs.attach_payload_iov(payload_list=target.name, iov_id=iov.id), expected, outcome
        )

    @rule(rows=st.lists(st.tuples(NUMBER, NUMBER, NUMBER, st.booleans()), max_size=5))
    def insert_in_bulk(self, rows):
        requests, starts, wanted, expected = {}, {}, [], []
        for number, begin, length, is_open in rows:
            target = self.pick(PayloadList, number)
            interval = self.interval(begin, length)
            if not (target and interval):
                return
            start, end = interval[0], AFTER_ALL if is_open else interval[1]
            label = self.label()
            wanted.append({"payload_url": label, "payload_list": target.name} | self.columns(start, end))
            if target.id not in requests:
                requests[target.id] = Request(self.grid, self.rows_of(target), is_protected(target))
                starts[target.id] = [row.start for row in requests[target.id].rows]
            expected.append((target, starts[target.id], Row(label, start, end)))
        self.write(
            lambda: bulk.insert_payload_iovs(rows=wanted),
            *self._bulk_outcome(expected, requests),
            effect=lambda: self._all_there(wanted),
        )

    @staticmethod
    def _bulk_outcome(expected, requests):
        """The error to expect, and otherwise the function of each list."""
        # The first wrong row gives the error, so it may be one of several.
        errors = {refusal(target.global_tag, "frozen") for target, _, _ in expected} - {None}
        if len({(target.id, row.start) for target, _, row in expected}) < len(expected):
            errors.add(InvalidInputError)
        if errors:
            return (*errors, OverlapError), {}
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
            tag, interval = self.pick(GlobalTag, number), self.interval(begin, length)
            if not (tag and interval):
                return
            row = Row(self.label(), interval[0], interval[1] if until == "c" else AFTER_ALL)
            wanted.append(
                {"global_tag": tag.name, "payload_type": kind, "payload_url": row.label, "since_only": until == "n"}
                | self.columns(row.start, row.end)
            )
            tags.append(tag)
            if (tag.name, kind) not in requests:
                target = PayloadList.objects.filter(global_tag=tag, payload_type__name=kind).first()
                stored = self.rows_of(target) if target else []
                requests[tag.name, kind] = Request(self.grid, stored, tag.status.name != "unlocked")
            requests[tag.name, kind].place(len(wanted), row, since_only=until == "n")
        frozen = next((error for error in (refusal(tag, "frozen") for tag in tags) if error), None)
        refused = OverlapError if any(request.refused for request in requests.values()) else None
        outcome = {key: request.v for key, request in requests.items()}
        if try_first:
            with contextlib.suppress(OverlapError, TagFrozenError), transaction.atomic():
                insertion.insert_payloads(rows=[dict(row) for row in wanted], dry_run=True)
                assert not (frozen or refused)
            assert self.state() == self._last
        # The first wrong row gives the error.
        expected = (frozen, OverlapError) if frozen else refused
        self.write(lambda: insertion.insert_payloads(rows=wanted), expected, outcome, lambda: self._all_there(wanted))

    @staticmethod
    def _all_there(wanted):
        labels = {row["payload_url"] for row in wanted}
        return labels == set(PayloadIOV.objects.filter(payload_url__in=labels).values_list("payload_url", flat=True))

    @rule(number=NUMBER)
    def delete_some_iov(self, number):
        iov = self.pick(PayloadIOV, number, payload_list__global_tag__isnull=False)
        if not iov:
            return
        source = iov.payload_list
        left = self.rows(PayloadIOV.objects.filter(payload_list=source).exclude(id=iov.id))
        self.write(
            lambda: payload_iovs.delete_payload_iov(
                global_tag=source.global_tag.name,
                payload_type=source.payload_type.name,
                start=Moment(iov.major_iov, iov.minor_iov),
                end=Moment(iov.major_iov_end, iov.minor_iov_end),
            ),
            refusal(source.global_tag, "frozen", "locked"),
            effect=lambda: not PayloadIOV.objects.filter(id=iov.id).exists(),
            outcome={source.id: {moment: valid_payload(left, moment) for moment in self.grid}},
        )

    @rule(number=NUMBER, status=st.sampled_from(["unlocked", "unlocked", "locked", "frozen"]))
    def change_status(self, number, status):
        tag = self.pick(GlobalTag, number)
        # Frozen tags are dead ends for a history, so there are few of them.
        if tag and not (status == "frozen" and number % 4):
            self.write(
                lambda: global_tags.change_status(name=tag.name, status=status),
                TagFrozenError if tag.status.name == "frozen" else None,
                effect=lambda: self._last[tag.name]["status"] == status,
            )

    @rule(number=NUMBER, name=st.sampled_from(TAGS))
    def clone(self, number, name):
        tag = self.pick(GlobalTag, number)
        if tag:
            exists = GlobalTag.objects.filter(name=name).exists()
            answers = self.answers(tag)
            made = self.write(
                lambda: global_tags.clone_global_tag(source=tag.name, target=name),
                NameTakenError if exists else None,
                effect=lambda: name in self._last,
            )
            assert made is None or self.answers(made) == answers

    @rule(number=NUMBER)
    def delete_some_tag(self, number):
        tag = self.pick(GlobalTag, number)
        if tag:
            self.write(
                lambda: global_tags.delete_global_tag(name=tag.name),
                refusal(tag, "frozen", "locked"),
                effect=lambda: tag.name not in self._last,
            )


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
