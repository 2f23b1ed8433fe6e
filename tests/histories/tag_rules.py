"""Writes to global tags and their lists, as steps of histories."""

from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import rule

from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadList
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import NameTakenError, PayloadListNotEmptyError, TagFrozenError, TagLimitError
from cdb_rest.rules.moment import Moment
from cdb_rest.writes import global_tags, limits, payload_lists
from cdb_rest.writes.reverting import revert_global_tag
from cdb_rest.writes.transactions import roll_back
from tests.histories.judge import Judge, changes_closed, closed_until, played, refusal
from tests.histories.oracle import valid_payload

TAGS = ["a", "b", "c", "d"]
TYPES = ["Gain", "Noise"]
NUMBER = st.integers(0, 11)


class TagRules(Judge):
    """Tags and lists come and go, and change their status."""

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
            expected = expected or (TagLimitError if self._exceeds_limits(one, tag) else None)
        self.write(
            lambda: payload_lists.attach_payload_list(global_tag=tag.name, payload_list=one.name),
            expected,
            effect=lambda: (
                self._last == before
                if one.global_tag == tag
                else self._last[tag.name]["lists"][one.payload_type.name] == one.name
            ),
        )

    def _exceeds_limits(self, one, tag):
        """Whether rows of a list that comes or goes start before the limit of the tag."""
        replaced = PayloadList.objects.filter(global_tag=tag, payload_type=one.payload_type)
        moves = [(one.global_tag, one), (tag, one), *((tag, item) for item in replaced)]
        return any(
            closed_until(owner) and any(row.start < closed_until(owner) for row in self.rows_of(item))
            for owner, item in moves
        )

    @rule(number=NUMBER, limit=NUMBER, reopen=st.booleans())
    def set_limit(self, number, limit, reopen):
        tag = self.pick(GlobalTag, number)
        if not tag:
            return
        closed = None if reopen else Moment(*self.grid[limit % 3])
        expected = None
        if tag.closed != closed:
            expected = refusal(tag, "frozen")
            if tag.closed and (closed is None or closed < tag.closed):
                expected = expected or refusal(tag, "locked")
        self.write(
            lambda: limits.set_limits(name=tag.name, closed_until=closed, largest_major=None),
            expected,
            effect=lambda: GlobalTag.objects.get(name=tag.name).closed == closed,
        )

    @rule(number=NUMBER)
    def delete_some_list(self, number):
        one = self.pick(PayloadList, number)
        if one:
            expected = refusal(one.global_tag, "frozen", "locked")
            expected = expected or (PayloadListNotEmptyError if self.rows_of(one) else None)
            self.write(
                lambda: payload_lists.delete_payload_list(name=one.name),
                expected,
                effect=lambda: not PayloadList.objects.filter(name=one.name).exists(),
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

    @rule(number=NUMBER)
    def clone(self, number):
        tag = self.pick(GlobalTag, number)
        if tag:
            name, exists = self._name_of_clone()
            answers = self.answers(tag)
            made = self.write(
                lambda: global_tags.clone_global_tag(source=tag.name, target=name),
                NameTakenError if exists else None,
                effect=lambda: name in self._last,
            )
            assert made is None or self.answers(made) == answers

    @staticmethod
    def _name_of_clone():
        """A free name while there are any, and whether there is a tag of this name."""
        taken = set(GlobalTag.objects.values_list("name", flat=True))
        return next(((name, False) for name in TAGS if name not in taken), (TAGS[-1], True))

    @rule(back=st.integers(0, 20))
    def clone_past(self, back):
        """Clone a tag, which may be deleted by now, as it was at one of the last revisions of all tags."""
        changes = GlobalTagChange.objects.filter(has_history=True).exclude(action="delete").order_by("-id")
        known = [change for change in changes if (change.global_tag, change.revision) in self._seen]
        if not known:
            return
        change = known[back % len(known)]
        source, revision = change.global_tag, change.revision
        name, exists = self._name_of_clone()
        played["clones of the past"] += not exists
        self.write(
            lambda: global_tags.clone_global_tag(source=source, target=name, as_of=AsOf(revision=revision)),
            NameTakenError if exists else None,
            effect=lambda: (
                self._rows_like(self._last[name]) == self._rows_like(self._seen[source, revision])
                and self.answers_like(source, revision, name)
            ),
        )

    @rule(number=NUMBER)
    def delete_some_tag(self, number):
        self.delete_tag(self.pick(GlobalTag, number))

    def delete_tag(self, tag, **options):
        if tag:
            self.write(
                lambda: global_tags.delete_global_tag(name=tag.name, **options),
                refusal(tag, "frozen", "locked"),
                effect=lambda: tag.name not in self._last,
            )

    @rule(number=NUMBER, back=st.integers(0, 20), try_first=st.booleans())
    def revert(self, number, back, try_first):
        tag = self.pick(GlobalTag, number)
        if not tag:
            return
        seen = [revision for name, revision in self._seen if name == tag.name]
        askable = GlobalTagChange.objects.filter(global_tag=tag.name, revision__in=seen, has_history=True)
        known = sorted(askable.values_list("revision", flat=True))
        revision = known[-1 - back % len(known)]
        then = self._seen[tag.name, revision]
        differs = self._differs(tag, then)
        expected = refusal(tag, "frozen", "locked") if differs else None
        now, past = self.rows_by_type(self._last[tag.name]), self.rows_by_type(then)
        if any(changes_closed(tag, self.v(now.get(kind, [])), self.v(past.get(kind, []))) for kind in TYPES):
            expected = expected or TagLimitError
        if try_first and not expected:
            tried = roll_back(partial(revert_global_tag, name=tag.name, revision=revision))
            assert bool(tried.types) == differs and self.state() == self._last
        before = self._last[tag.name]["revision"]
        outcome = {
            (tag.name, kind): {moment: valid_payload(rows, moment) for moment in self.grid}
            for kind, rows in self.rows_by_type(then).items()
        }
        self.write(
            lambda: revert_global_tag(name=tag.name, revision=revision),
            expected,
            outcome if differs else {},
            effect=lambda: (
                (self._last[tag.name]["revision"] > before) == differs
                and not self._differs(tag, then)
                and self._last[tag.name]["status"] == tag.status.name
                and self.answers_like(tag.name, revision, tag.name)
            ),
        )

    def _differs(self, tag, then):
        """Whether the tag has other contents than then: other rows, or another list although that of then is there."""
        now = self._last[tag.name]
        if self._rows_like(now) != self._rows_like(then):
            return True
        attached = {name for of_tag in self._last.values() for name in of_tag["lists"].values()}
        there = set(PayloadList.objects.values_list("name", flat=True)) - attached
        return any(then["lists"][kind] != name and then["lists"][kind] in there for kind, name in now["lists"].items())

    @staticmethod
    def _rows_like(state):
        """The rows of a tag by payload type and start, whatever the names of its lists are."""
        return {
            kind: {start: content for (of_list, start), content in state["rows"].items() if of_list == name}
            for kind, name in state["lists"].items()
        }
