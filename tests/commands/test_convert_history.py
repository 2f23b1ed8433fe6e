"""manage.py convert_history: what it makes of the change log of earlier versions, held against the history that there was."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.moment import Mode, Moment
from cdb_rest.history.revisions import find_past
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.lookup.queries import look_up_here
from cdb_rest.models import (
    GlobalTag,
    GlobalTagChange,
    PayloadIOV,
    PayloadIOVHistory,
    PayloadList,
    PayloadListMembership,
    PayloadListVersion,
    PayloadType,
)
from cdb_rest.services import convert_history as module
from cdb_rest.services import payload_iovs
from cdb_rest.services.global_tags import change_status, create_global_tag
from cdb_rest.services.insertion import insert_payloads
from cdb_rest.services.payload_lists import attach_payload_list, create_payload_list
from tests.commands.before_history import documents, forget_history
from tests.histories.machine import WORLDS
from tests.profiles import examples

STEPS = settings(
    max_examples=examples(15),
    stateful_step_count=max(20, examples(50)),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
COUNTS = ("payload_iovs_before", "payload_iovs_after")


def convert(*arguments):
    """What the command prints."""
    out = StringIO()
    call_command("convert_history", *arguments, stdout=out)
    return out.getvalue()


class Upgrades:
    """A history of writes in which cdb is upgraded once, and the log is converted afterwards."""

    def __init__(self):
        super().__init__()
        self._documents = None
        self._expected = set()
        self._counts = {}

    @precondition(lambda self: self._documents is None)
    @rule()
    def upgrade(self):
        self._counts = {one: number for one, *number in GlobalTagChange.objects.values_list("id", *COUNTS)}
        self._documents = forget_history()
        for tag in GlobalTag.objects.all():
            ids = []
            for change in GlobalTagChange.objects.filter(global_tag=tag.name).order_by("-revision"):
                ids.append(change.id)
                if change.action in ("create", "clone"):
                    break
            self._expected.update(ids)
        self._counts = {one: number for one, number in self._counts.items() if one in self._expected}

    @precondition(lambda self: self._documents is not None)
    @rule()
    def convert(self):
        convert("--batch", "3")

    def check_log(self):
        """Each change of a tag that existed at the upgrade is as it was, and there are no documents of it any more."""
        if self._documents is None:
            self.upgrade()
        convert()
        converted = GlobalTagChange.objects.filter(id__in=self._documents, has_history=True)
        assert {change.id for change in converted} == self._expected
        for change in converted:
            assert change.logged_before is None and change.logged_after is None
            before, after = documents(change)
            assert (before, after) == self._documents[change.id], (change.global_tag, change.revision)
        counts = GlobalTagChange.objects.filter(id__in=self._expected)
        assert {one: number for one, *number in counts.values_list("id", *COUNTS)} == self._counts
        self._answered = {
            (query, revision): answer
            for (query, revision), answer in self._answered.items()
            if GlobalTagChange.objects.get(global_tag=query.tag, revision=revision).has_history
        }


@pytest.mark.django_db
@pytest.mark.parametrize("world", WORLDS)
def test_every_revision_of_a_random_history_answers_as_it_did(world, settings):
    machine, settings.CDB_IOV_MODE = WORLDS[world]
    run_state_machine_as_test(type("Upgraded", (Upgrades, machine), {}), settings=STEPS)


@pytest.fixture
def logged():
    """Tag "tag" with eight revisions and a list of it, as earlier versions left them. Its payloads 0 to 3 came one by one."""
    create_global_tag(name="tag", status="unlocked")
    PayloadType.objects.create(name="Gain")
    name = attach_payload_list(global_tag="tag", payload_list=create_payload_list(payload_type="Gain").name).name
    for number in range(4):
        insert(number)
    change_status(name="tag", status="locked")
    change_status(name="tag", status="unlocked")
    forget_history()
    return PayloadList.objects.get(name=name)


def insert(number):
    row = {"payload_url": f"payload {number}", "major_iov": number, "minor_iov": 0}
    insert_payloads(rows=[row | {"global_tag": "tag", "payload_type": "Gain", "since_only": False}])


def answers():
    """The payload at a late moment for each revision that can be asked for."""
    revisions = GlobalTagChange.objects.filter(global_tag="tag", has_history=True).values_list("revision", flat=True)
    found = {}
    for revision in sorted(revisions):
        query = LookupQuery("tag", Moment(9, 0), False, False, Mode.CONTINUOUS, as_of=AsOf(revision=revision))
        found[revision] = [row[1] for row in json.loads(look_up_here(query).text)]
    return found


ANSWERS = {
    1: [],
    2: [],
    **{revision: [f"payload {min(revision, 6) - 3}"] for revision in range(3, 9)},
}


@pytest.mark.django_db
def test_all_revisions_can_be_asked_for(logged):
    assert answers() == {8: ["payload 3"]}
    printed = convert()
    assert "tag: can be asked for from revision 1 on.\n" in printed
    assert "Converted 7 changes of 1 global tags" in printed and "left without history: 0" in printed
    assert answers() == ANSWERS
    assert find_past("tag", AsOf(revision=7)).status == "locked"


@pytest.mark.django_db
def test_the_time_of_insertion_is_that_of_the_change_if_the_row_is_gone(logged):
    payload_iovs.delete_payload_iov(global_tag="tag", payload_type="Gain", start=Moment(3, 0))
    forget_history()
    convert()
    change = GlobalTagChange.objects.get(global_tag="tag", revision=6)
    [past] = PayloadIOVHistory.objects.filter(payload_url="payload 3")
    assert past.created == change.created


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spoil", "first", "reason"),
    [
        (lambda iovs: iovs.filter(major_iov=1).delete(), 6, "was not there later"),
        (lambda iovs: iovs.filter(major_iov=1).update(checksum="other"), 6, "was different later"),
        (lambda iovs: iovs.filter(major_iov=3).update(payload_list=None), 7, "was not there later"),
        (lambda iovs: iovs.create(payload_url="by hand", major_iov=7, minor_iov=0), 3, "that were not added"),
        (lambda iovs: iovs.filter(major_iov=0).update(size=7), 5, "was different later"),
    ],
)
def test_a_change_that_contradicts_the_rows_is_the_end(logged, spoil, first, reason):
    spoil(logged.payload_iovs)
    printed = convert()
    assert f"from revision {first} on; not before it: change {first - 1} contradicts" in printed and reason in printed
    assert sorted(answers()) == [*range(first, 9)]
    oldest = GlobalTagChange.objects.get(global_tag="tag", revision=first)
    assert oldest.logged_after is not None
    before = snapshot()
    assert f"from revision {first} on; not before it" in convert()
    assert snapshot() == before


@pytest.mark.django_db
def test_a_status_that_was_changed_by_hand_is_the_end(logged):
    GlobalTagChange.objects.filter(revision=8).update(status="locked")
    assert "revision 8 on; not before it: change 8 contradicts later ones: it set the status unlocked" in convert()


@pytest.mark.django_db
def test_what_contradicted_can_be_put_right(logged):
    logged.payload_iovs.filter(major_iov=1).update(checksum="other")
    convert()
    logged.payload_iovs.filter(major_iov=1).update(checksum="")
    PayloadIOVHistory.objects.filter(major_iov=1).update(checksum="")
    assert "tag: can be asked for from revision 1 on.\n" in convert()
    assert answers() == ANSWERS


@pytest.mark.django_db
def test_writes_between_the_upgrade_and_the_conversion_stay(logged):
    payload_iovs.delete_payload_iov(global_tag="tag", payload_type="Gain", start=Moment(3, 0))
    insert(0)
    insert(5)
    later = {9: ["payload 2"], 10: ["payload 0"], 11: ["payload 5"]}
    convert()
    assert answers() == ANSWERS | later


@pytest.mark.django_db
def test_an_interrupted_conversion_leaves_nothing_and_can_be_repeated(logged, monkeypatch):
    before = snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(module, "_finish", interrupt)
        with pytest.raises(KeyboardInterrupt), transaction.atomic():
            convert()
    assert snapshot() == before
    convert()
    after = snapshot()
    assert answers() == ANSWERS
    assert "Converted 0 changes of 0 global tags" in convert()
    assert snapshot() == after


def interrupt(*_):
    raise KeyboardInterrupt


def snapshot():
    """All rows that the command can change."""
    models = (GlobalTagChange, PayloadList, PayloadIOV, PayloadIOVHistory, PayloadListVersion, PayloadListMembership)
    return [sorted(map(str, model.objects.values_list())) for model in models]


@pytest.mark.django_db
def test_options():
    with pytest.raises(CommandError, match=r"--batch.*at least 1"):
        convert("--batch", "0")
    with pytest.raises(CommandError, match="nowhere"):
        convert("--tag", "nowhere")


@pytest.mark.django_db
@pytest.mark.parametrize("is_first", ["the tag that it left", "the tag that it came into"])
def test_a_list_that_moved_between_tags_has_its_rows_of_each_stay(is_first):
    for tag in ("a", "b"):
        create_global_tag(name=tag, status="unlocked")
    PayloadType.objects.create(name="Gain")
    name, other = (create_payload_list(payload_type="Gain").name for _ in range(2))
    # In the end it is in a tag for the second time, so that its former stay there ended.
    for tag, payload_list in (("a", name), ("b", name), ("b", other), ("b", name)):
        attach_payload_list(global_tag=tag, payload_list=payload_list)
        if payload_list == name and tag == "b":
            major = GlobalTagChange.objects.count()
            row = {"payload_url": f"payload {major}", "major_iov": major, "minor_iov": 0, "since_only": False}
            insert_payloads(rows=[row | {"global_tag": tag, "payload_type": "Gain"}])
    for left in GlobalTagChange.objects.filter(action="attach_list"):
        came = GlobalTagChange.objects.filter(number=left.number).exclude(id=left.id).first()
        leaves = "payload_lists" in documents(left)[0]
        if came and leaves and (left.id < came.id) != (is_first == "the tag that it left"):
            swap_ids(left, came)
    changes = forget_history()
    convert()
    assert {one.id: documents(one) for one in GlobalTagChange.objects.filter(has_history=True)} == changes


def swap_ids(one, other):
    for old, new in ((one.id, 0), (other.id, one.id), (0, other.id)):
        GlobalTagChange.objects.filter(id=old).update(id=new)
