"""After a restoration, revisions and names that lost changes have used are not used again."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from cdb_rest.models import GlobalTag, Restoration
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
