"""After a restoration, revisions and names that lost changes have used are not used again."""

import time
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from cdb_rest.models import GlobalTag, GlobalTagChange, Restoration
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import NameRetiredError
from cdb_rest.writes.global_tags import change_status, clone_global_tag, create_global_tag
from cdb_rest.writes.restorations import record_restoration

pytestmark = pytest.mark.django_db
ORIGIN = Origin("operator", "after the fire")


def restore(*frozen_before):
    return record_restoration(frozen_before=frozen_before, origin=ORIGIN)


def version(name):
    return GlobalTag.objects.with_version().get(name=name).version


def test_each_tag_that_is_not_frozen_gets_a_revision_beyond_all_earlier_ones_and_a_line_in_the_log():
    for status in ("unlocked", "locked", "frozen"):
        create_global_tag(name=status, status="unlocked")
        change_status(name=status, status=status)
    before = {name: version(name) for name in ("unlocked", "locked", "frozen")}
    begin = time.time_ns() // 1_000_000
    restoration = restore()
    assert begin <= restoration.first_revision <= time.time_ns() // 1_000_000
    assert restoration.comment == "after the fire"
    for name in ("unlocked", "locked"):
        tag = GlobalTag.objects.get(name=name)
        change = GlobalTagChange.objects.get(global_tag=name, revision=tag.revision)
        assert tag.revision >= restoration.first_revision
        assert (change.action, change.actor, change.comment) == ("restore", "operator", "after the fire")
        assert (change.payload_iovs_before, change.payload_iovs_after) == (0, 0)
        assert version(name) != before[name]
    # Caches do not revalidate what they have of a frozen tag.
    assert version("frozen") == before["frozen"]


def test_new_tags_have_revisions_beyond_those_of_lost_tags_with_their_names():
    restoration = restore()
    assert create_global_tag(name="new", status="unlocked").revision >= restoration.first_revision
    assert clone_global_tag(source="new", target="copy").revision >= restoration.first_revision


def test_a_name_of_a_lost_frozen_tag_can_not_be_frozen_again_until_caches_have_dropped_its_responses(settings):
    create_global_tag(name="lost", status="unlocked")
    create_global_tag(name="kept", status="unlocked")
    change_status(name="kept", status="frozen")
    assert restore("lost", "kept", "gone").retired_names == ["gone", "lost"]
    create_global_tag(name="gone", status="unlocked")
    for name in ("lost", "gone"):
        with pytest.raises(NameRetiredError, match="another name"):
            change_status(name=name, status="frozen")
    change_status(name="lost", status="locked")
    clone_global_tag(source="lost", target="other")
    assert change_status(name="other", status="frozen").status.name == "frozen"
    age = timedelta(seconds=settings.CDB_FROZEN_MAX_AGE_SECONDS + 1)
    Restoration.objects.update(created=timezone.now() - age)
    assert change_status(name="lost", status="frozen").status.name == "frozen"


def test_the_command_reads_names_from_a_file_and_reports(tmp_path, capsys):
    create_global_tag(name="tag", status="unlocked")
    file = tmp_path / "names"
    file.write_text("lost\n\nanother one\n")
    call_command("record_restoration", frozen_before=file, comment="from the dump")
    restoration = Restoration.objects.latest("id")
    assert restoration.retired_names == ["another one", "lost"] and restoration.comment == "from the dump"
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("The database has 1 global tags and 0 payload IOVs. Revisions continue from ")
    assert second.endswith(": another one, lost")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"comment": "x" * 1001}, "--comment must have at most 1,000 characters"),
        ({"frozen_before": "missing"}, "--frozen-before must be a file"),
    ],
)
def test_wrong_options_are_one_clear_line_and_nothing_is_recorded(options, message, tmp_path):
    if "frozen_before" in options:
        options = {"frozen_before": tmp_path / "missing"}
    with pytest.raises(CommandError, match=message):
        call_command("record_restoration", **options)
    assert not Restoration.objects.filter(first_revision__gt=1).exists()
