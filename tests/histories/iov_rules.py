"""Writes of payload IOVs, as steps of histories."""

import contextlib

from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import rule

from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.errors import (
    InvalidInputError,
    OverlapError,
    TagFrozenError,
)
from cdb_rest.rules.moment import Moment
from cdb_rest.writes import bulk, insertion, payload_iovs
from tests.histories.judge import Judge, is_protected, refusal
from tests.histories.oracle import AFTER_ALL, Request, Row, valid_payload
from tests.histories.tag_rules import NUMBER, TYPES


class IOVRules(Judge):
    """IOVs come into lists by every way there is, and leave them."""

    @rule(number=NUMBER, begin=NUMBER, length=NUMBER)
    def create_and_attach(self, number, begin, length):
        target = self.pick(PayloadList, number)
        interval = self.interval(begin, length)
        if target and interval:
            columns = self.columns(*interval)
            iov = payload_iovs.create_payload_iov(
                values={"payload_url": self.label(), "checksum": "c", "size": 1} | columns
            )
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
