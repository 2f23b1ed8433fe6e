"""Every kind of user against the service: they accept correct responses."""

import pytest

from loadtests import locusts
from loadtests.recording import JOB, OK
from tests.e2e.service import JobClient

pytestmark = pytest.mark.xdist_group("load-users")
ALL = ("ReconstructionJob", "KeepAliveJob", "BelleJob", "Expert", "Indecisive", "Misbehaving")
# What `manage.py run` seeds.
TINY = {"global-tag": "tiny", "layout": "realistic"}


@pytest.fixture
def run(load_service, tmp_path):
    """A function that puts load on the service and returns the recording."""

    def run(users, count, **options):
        given = TINY | {"users": count} | {name.replace("_", "-"): value for name, value in options.items()}
        return locusts.run(f"http://127.0.0.1:{load_service.port}", users, given, tmp_path / "recording")

    return run


def outcomes(recording):
    """The outcomes by user and name of request."""
    sent = recording[recording["method"] != JOB].astype({"user": str, "name": str, "outcome": str})
    return sent.groupby(["user", "name"])["outcome"].agg(set).to_dict()


def failed(recording):
    return recording[recording["outcome"] != OK][["name", "outcome", "detail"]].to_dict("records")


def test_all_users_get_correct_responses_and_delete_their_data(load_service, run):
    recording = run(dict.fromkeys(ALL, 1) | {"Misbehaving": 3}, 8, indecision=0.1, jobs_per_user=12)
    found = outcomes(recording)
    assert failed(recording) == [] and {user for user, _ in found} == set(ALL)
    names = {name for _, name in found}
    read = {"lookup", "lookup again", "lookup, shape=dict", "read back", "browse IOVs"}
    assert read | {"insert, dry run", "clean up", "deleted tag"} <= names
    assert sum(name.startswith("mistake: ") for name in names) > 5
    again = recording[recording["name"] == "lookup again"]
    assert set(again["status"]) == {304} and set(again["bytes"]) == {0}
    assert set(recording[recording["name"] == "lookup"]["rows"]) == {10}
    client = JobClient(load_service.port)
    assert [tag["name"] for tag in client.get("globalTags")] == ["tiny"]
    assert [kind["name"] for kind in client.get("pt") if kind["name"].startswith("load-")] == []
