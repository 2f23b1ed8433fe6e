"""Writes of payload IOVs, as steps of histories."""

import contextlib
from functools import partial

from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import rule

from cdb_rest.models import GlobalTag, ListedPayloadIOV, PayloadIOV, PayloadList
from cdb_rest.rules.errors import InvalidInputError, OverlapError, PayloadIOVSharedError, TagFrozenError, TagLimitError
from cdb_rest.rules.moment import Interval, Moment
from cdb_rest.writes import bulk, clearing, insertion, payload_iovs
from cdb_rest.writes.transactions import roll_back
from tests.histories.judge import Judge, changes_closed, closed_until, errors_of, is_shared, played, refusal
from tests.histories.oracle import AFTER_ALL, LAST, Request, Row, valid_payload
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

    @rule(number=NUMBER)
    def attach_a_shared_iov_to_the_list_that_shares_it(self, number):
        listed = self.pick(ListedPayloadIOV, number, payload_list__base_list_id__isnull=False)
        if listed:
            self._attach(PayloadIOV.objects.filter(id=listed.id).first(), listed.payload_list)

    def _attach(self, iov, target):
        if not (iov and target):
            return None
        source = iov.payload_list
        new = self.rows([iov])[0]
        request = self.request(target)
        request.place(0, new, since_only=False)
        if source == target or (source and request.changes_nothing):
            before = self._last
            played["rows attached again"] += source != target
            return self.write(
                lambda: payload_iovs.attach_payload_iov(payload_list=target.name, iov_id=iov.id),
                None,
                effect=lambda: self._last == before,
            )
        expected = errors_of([request])
        outcome = {target.id: request.v}
        if source:
            left = self.rows(PayloadIOV.objects.filter(payload_list=source).exclude(id=iov.id))
            outcome[source.id] = self.v(left)
            expected |= {refusal(source.global_tag, "frozen", "locked")} - {None}
            expected |= {PayloadIOVSharedError} if is_shared(iov) else set()
            limit = closed_until(source.global_tag)
            expected |= {TagLimitError} if limit and new.start < limit else set()
        return self.write(
            lambda: payload_iovs.attach_payload_iov(payload_list=target.name, iov_id=iov.id), tuple(expected), outcome
        )

    @rule(number=NUMBER, begin=NUMBER, length=NUMBER, way=st.sampled_from(["insert", "bulk", "attach"]))
    def send_again(self, number, begin, length, way):
        """A payload once more, in a part of the moments where it is valid: nothing changes, whatever the status is."""
        target = self.pick(PayloadList, number, global_tag__isnull=False)
        valid = [(moment, label) for moment, label in self.v(self.rows_of(target)).items() if label] if target else []
        if not valid:
            return
        start, label = valid[begin % len(valid)]
        after = [moment for moment in self.grid if moment > start][: 1 + length % 3]
        end = after[-1] if after else AFTER_ALL
        if end == (LAST, LAST) and not self.discrete:
            return
        covered = [moment for moment in self.grid if start <= moment < end]
        if any(valid_payload(self.rows_of(target), moment) != label for moment in covered):
            return
        row = {"payload_url": label} | self.columns(start, end)
        names = {"global_tag": target.global_tag.name, "payload_type": target.payload_type.name, "since_only": False}
        before, rows = self._last, PayloadIOV.objects.count()
        iov = payload_iovs.create_payload_iov(values=row) if way == "attach" else None
        writes = {
            "insert": lambda: insertion.insert_payloads(rows=[row | names]),
            "bulk": lambda: bulk.insert_payload_iovs(rows=[row | {"payload_list": target.name}]),
            "attach": lambda: payload_iovs.attach_payload_iov(payload_list=target.name, iov_id=iov.id),
        }
        is_new = way == "attach"
        self.write(
            writes[way], None, effect=lambda: self._last == before and PayloadIOV.objects.count() == rows + is_new
        )
        played["rows sent again"] += 1

    @rule(number=NUMBER, begin=NUMBER, length=NUMBER, try_first=st.booleans())
    def clear(self, number, begin, length, try_first):
        target, interval = self.pick(PayloadList, number, global_tag__isnull=False), self.interval(begin, length)
        # No row can end before the last moment, unless ends are inclusive.
        if not (target and interval) or (interval[0] == (LAST, LAST) and not self.discrete):
            return
        before = self.v(self.rows_of(target))
        after = {moment: None if interval[0] <= moment < interval[1] else label for moment, label in before.items()}
        names = {"global_tag": target.global_tag.name, "payload_type": target.payload_type.name}
        values = names | {"interval": Interval(*(Moment(*moment) for moment in interval))}
        expected = {refusal(target.global_tag, "frozen", "locked")} - {None} if before != after else set()
        expected |= {TagLimitError} if changes_closed(target.global_tag, before, after) else set()
        if try_first and not expected:
            tried = roll_back(partial(clearing.clear_interval, **values))
            assert bool(tried.placement.cuts) == (before != after) and self.state() == self._last
        played["clearings"] += before != after and not expected
        self.write(lambda: clearing.clear_interval(**values), tuple(expected), {target.id: after})

    @rule(rows=st.lists(st.tuples(NUMBER, NUMBER, NUMBER, st.booleans()), max_size=5))
    def insert_in_bulk(self, rows):
        requests, wanted, expected = {}, [], []
        for number, begin, length, is_open in rows:
            target = self.pick(PayloadList, number)
            interval = self.interval(begin, length)
            if not (target and interval):
                return
            start, end = interval[0], AFTER_ALL if is_open else interval[1]
            label = self.label()
            wanted.append({"payload_url": label, "payload_list": target.name} | self.columns(start, end))
            requests.setdefault(target.id, self.request(target))
            expected.append((target, Row(label, start, end)))
        self.write(
            lambda: bulk.insert_payload_iovs(rows=wanted),
            *self._bulk_outcome(expected, requests),
            effect=lambda: self._all_there(wanted),
        )

    @staticmethod
    def _bulk_outcome(expected, requests):
        """The errors to expect, and otherwise the function of each list."""
        errors, starts = set(), {list_id: {row.start for row in request.rows} for list_id, request in requests.items()}
        for target, row in expected:
            others = [other for item, other in expected if item == target and other is not row]
            if any(other.start == row.start or other.start < row.start < other.end != AFTER_ALL for other in others):
                errors.add(InvalidInputError)
        # A set: the later starts come first, because a row without an end is valid up to them.
        for number, (target, row) in enumerate(sorted(expected, key=lambda pair: pair[1].start, reverse=True)):
            if row.start in starts[target.id]:
                requests[target.id].refused.append(number)
            requests[target.id].place(number, row, since_only=row.is_open)
        errors |= errors_of(requests.values())
        return tuple(errors), {} if errors else {list_id: request.v for list_id, request in requests.items()}

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
                statuses = (tag.status.name != "unlocked", closed_until(tag), tag.status.name == "frozen")
                empty = Request(self.grid, [], *statuses, discrete=self.discrete)
                requests[tag.name, kind] = self.request(target) if target else empty
            requests[tag.name, kind].place(len(wanted), row, since_only=until == "n")
        expected = errors_of(requests.values())
        outcome = {key: request.v for key, request in requests.items()}
        if try_first:
            with contextlib.suppress(OverlapError, TagFrozenError, TagLimitError), transaction.atomic():
                insertion.insert_payloads(rows=[dict(row) for row in wanted], dry_run=True)
                assert not expected
            assert self.state() == self._last
        self.write(
            lambda: insertion.insert_payloads(rows=wanted), tuple(expected), outcome, lambda: self._all_there(wanted)
        )

    @staticmethod
    def _all_there(wanted):
        labels = {row["payload_url"] for row in wanted}
        return labels == set(PayloadIOV.objects.filter(payload_url__in=labels).values_list("payload_url", flat=True))

    @rule(number=NUMBER)
    def delete_some_iov(self, number):
        iov = self.pick(ListedPayloadIOV, number, payload_list__global_tag__isnull=False)
        if not iov:
            return
        source = iov.payload_list
        [gone] = self.rows([iov])
        left = [row for row in self.rows_of(source) if row != gone]
        limit = closed_until(source.global_tag)
        is_closed = limit and (iov.major_iov, iov.minor_iov) < limit
        self.write(
            lambda: payload_iovs.delete_payload_iov(
                global_tag=source.global_tag.name,
                payload_type=source.payload_type.name,
                start=Moment(iov.major_iov, iov.minor_iov),
                end=Moment(iov.major_iov_end, iov.minor_iov_end),
            ),
            refusal(source.global_tag, "frozen", "locked") or (TagLimitError if is_closed else ()),
            effect=lambda: gone not in self.rows_of(source),
            outcome={source.id: {moment: valid_payload(left, moment) for moment in self.grid}},
        )
