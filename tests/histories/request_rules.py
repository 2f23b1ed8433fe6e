"""Requests for changes, which are made and later accepted, as steps of histories."""

from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import rule

from cdb_rest.api.proposals import proposal_of, read_proposal
from cdb_rest.models import ChangeRequest, GlobalTag, GlobalTagChange, GlobalTagStatus, PayloadList, RequestKind
from cdb_rest.rules.access import Origin, Principal
from cdb_rest.rules.errors import (
    CdbError,
    GlobalTagNotFoundError,
    PayloadListNotFoundError,
    TagChangedError,
    TagFrozenError,
    TagLimitError,
    TagLockedError,
)
from cdb_rest.writes import global_tags
from cdb_rest.writes.requests import accept_request, make_request
from cdb_rest.writes.undoing import undo_change
from tests.histories.judge import changes_closed, closed_until, errors_of, played
from tests.histories.oracle import AFTER_ALL, LAST, Request, Row, wire_end
from tests.histories.tag_rules import NUMBER, TYPES, TagRules


class RequestRules(TagRules):
    """An accepted request does what its write does; on a locked tag that accepts requests, what it does on an unlocked one."""

    @rule(
        number=NUMBER,
        kind=st.sampled_from(TYPES),
        begin=NUMBER,
        length=NUMBER,
        until=st.sampled_from("onc"),
        at_once=st.booleans(),
    )
    def propose_rows(self, number, kind, begin, length, until, at_once):
        tag, interval = self.pick(GlobalTag, number), self.interval(begin, length)
        if tag and interval:
            row = Row(self.label(), interval[0], interval[1] if until == "c" else AFTER_ALL)
            end = {"o": "open", "n": "next", "c": self._end(row.end)}[until]
            columns = {"payload_type": kind, "payload_url": row.label, "since": list(row.start), "until": end}
            self._propose(
                tag, "import", {"rows": [columns], "open_hides_later": True}, (kind, row, until == "n"), at_once
            )

    @rule(number=NUMBER, kind=st.sampled_from(TYPES), begin=NUMBER, length=NUMBER, at_once=st.booleans())
    def propose_a_clearing(self, number, kind, begin, length, at_once):
        tag, interval = self.pick(GlobalTag, number), self.interval(begin, length)
        if tag and interval and (interval[0] != (LAST, LAST) or self.discrete):
            document = {"payload_type": kind, "since": list(interval[0]), "until": self._end(interval[1])}
            self._propose(tag, "clear", document, (kind, *interval), at_once)

    @rule(number=NUMBER, back=NUMBER, at_once=st.booleans())
    def propose_an_undo(self, number, back, at_once):
        tag = self.pick(GlobalTag, number)
        changes = list(GlobalTagChange.objects.filter(tag_id=tag.id).order_by("-revision")) if tag else []
        if changes:
            self._propose(tag, "undo", {"revision": changes[back % len(changes)].revision}, (), at_once)

    def _end(self, end):
        return "open" if end == AFTER_ALL else list(wire_end(end, self.discrete))

    def _propose(self, tag, kind, document, facts, at_once):
        before, number = self._last, ChangeRequest.objects.count()
        origin = Origin(f"user {number}", principal=Principal(f"user {number}", "token"))
        request = self.write(
            lambda: make_request(
                proposal=read_proposal(RequestKind(kind), tag.name, document),
                document=document,
                reason="why",
                origin=origin,
            ),
            self._outcome(tag, kind, document, facts, opens=True)[0],
            effect=lambda: self._last == before,
        )
        if request is not None:
            self._requests.append((request.id, facts))
            if at_once:
                self.accept(len(self._requests) - 1, True, True)

    @rule(number=NUMBER, accepts=st.booleans(), locks=st.booleans())
    def accept(self, number, accepts, locks):
        if not self._requests:
            return
        one = self._requests[number % len(self._requests)]
        request, facts = ChangeRequest.objects.get(id=one[0]), one[1]
        tag = GlobalTag.objects.select_related("status").filter(name=request.global_tag).first()
        if locks and tag and tag.status.name == "unlocked":
            self.write(lambda: global_tags.change_status(name=tag.name, status="locked"), None)
            tag = GlobalTag.objects.select_related("status").get(id=tag.id)
        if tag is None or tag.id != request.tag_id:
            expected, outcome, state = (TagChangedError if tag else GlobalTagNotFoundError), {}, None
        else:
            GlobalTag.objects.filter(id=tag.id).update(accepts_requests=accepts)
            expected, outcome, state = self._outcome(tag, request.kind, request.document, facts, opens=accepts)
        changes = GlobalTagChange.objects.count()
        done = self.write(
            lambda: accept_request(number=request.id, read=proposal_of, confirmed=True, origin=Origin("bob", "fine")),
            expected,
            outcome,
            effect=lambda: state is None or self._is_like(self._last[tag.name], state),
        )
        if done is None:
            assert ChangeRequest.objects.get(id=request.id).state == "open"
            return
        self._requests.remove(one)
        with connection.cursor() as cursor:
            # Otherwise it is dropped at the end of the transaction.
            cursor.execute("DROP TABLE IF EXISTS cdb_import")
        change = GlobalTagChange.objects.latest("id")
        assert (done.request.result_revision is None) == (GlobalTagChange.objects.count() == changes)
        if done.request.result_revision is not None:
            assert (change.revision, change.actor, change.comment) == (done.request.result_revision, "bob", "why")
            assert change.source["request"] == request.id and change.source["requested_by"] == request.requester
            assert change.status == self._last[tag.name]["status"]
            assert state is not None or change.status == tag.status.name
            played["accepted requests"] += 1
            played["clearings"] += request.kind == "clear"
            played["accepted for locked tags"] += tag.status.name == "locked"

    def _outcome(self, tag, kind, document, facts, *, opens):
        """The errors to expect, v of the lists that change, and for an undo the state of the tag."""
        status = "unlocked" if opens and tag.status.name == "locked" else tag.status.name
        if kind == "undo":
            return self._undone(tag, document["revision"], status)
        payload_list = PayloadList.objects.filter(global_tag=tag, payload_type__name=facts[0]).first()
        rows, limit = self.rows_of(payload_list) if payload_list else [], closed_until(tag)
        if kind == "import":
            request = Request(self.grid, rows, status != "unlocked", limit, status == "frozen", discrete=self.discrete)
            request.place(0, facts[1], since_only=facts[2])
            return tuple(errors_of([request])), {(tag.name, facts[0]): request.v}, None
        if payload_list is None:
            return PayloadListNotFoundError, {}, None
        before = self.v(rows)
        after = {moment: None if facts[1] <= moment < facts[2] else label for moment, label in before.items()}
        errors = {"locked": [TagLockedError], "frozen": [TagFrozenError]}.get(status, []) if before != after else []
        errors = [*errors, *([TagLimitError] if changes_closed(tag, before, after) else [])]
        return tuple(errors), {payload_list.id: after}, None

    def _undone(self, tag, revision, status):
        """What an undo would do to the tag with this status; a change of the status is undone as it is."""
        change = GlobalTagChange.objects.get(global_tag=tag.name, revision=revision)
        try:
            with transaction.atomic():
                if change.action != "status":
                    GlobalTag.objects.filter(id=tag.id).update(status=GlobalTagStatus.objects.get(name=status))
                undo_change(name=tag.name, revision=revision)
                state = self.state()[tag.name]
                transaction.set_rollback(True)
        except CdbError as error:
            return type(error), {}, None
        if change.action != "status":
            state["status"] = tag.status.name
        # By type, because an undo may attach another list.
        return None, {(tag.name, kind): self.v(rows) for kind, rows in self.rows_by_type(state).items()}, state

    def _is_like(self, state, other):
        """Whether a tag has the same status and rows by payload type, whatever the names of its lists are."""
        return (state["status"], self._rows_like(state)) == (other["status"], self._rows_like(other))
