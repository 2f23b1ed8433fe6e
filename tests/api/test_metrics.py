"""/metrics in a single process, without files."""

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.django_db


def told(**settings):
    answer = Client().get("/metrics")
    assert answer.status_code == 200 and answer["Content-Type"].startswith("text/plain; version=")
    assert answer["Cache-Control"] == "no-store"
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


@pytest.mark.django_db(transaction=True)
def test_tags_are_told_of_as_they_are(build):
    tag = build.tag("shown")
    found = told()
    assert found["cdb_global_tag_revision", "shown"] == tag.revision
    assert found["cdb_global_tag_status", "shown", "unlocked"] == 1
    assert found["cdb_global_tags",] == 1 and found["cdb_database_up",] == 1
    assert not any(name[0].startswith(("cdb_nginx", "cdb_pgbouncer")) for name in found)


@pytest.mark.django_db(transaction=True)
def test_there_are_no_more_of_them_than_permitted_and_the_latest_come_first(build, settings):
    for number in range(5):
        build.tag(f"tag{number}")
    settings.CDB_METRICS_MAX_TAGS = 2
    found = told()
    assert {key[1] for key in found if key[0] == "cdb_global_tag_revision"} == {"tag3", "tag4"}
    assert found["cdb_global_tags",] == 5


@pytest.mark.django_db(transaction=True)
def test_errors_and_changes_are_counted_when_they_are_answered_and_committed(api):
    before = told()
    api.post("gt", {"name": "counted", "status": "unlocked"}).ok()
    api.post("gt", {"name": "counted", "status": "unlocked"}).error(400, "name_taken")
    after = told()
    for key in (("cdb_changes_total", "create"), ("cdb_errors_total", "name_taken")):
        assert after[key] - before.get(key, 0) == 1


def test_it_may_be_asked_by_any_name():
    assert Client().get("/metrics", headers={"Host": "10.1.2.3:8000"}).status_code == 200
    assert Client().get("/health/live", headers={"Host": "10.1.2.3:8000"}).status_code == 400


def test_it_can_only_be_read():
    assert Client().head("/metrics").status_code == 200
    assert Client().post("/metrics").status_code == 405
