"""Every kind of user against the service: they accept correct responses and detect wrong ones."""

import contextlib

import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from loadtests.campaigns import locusts
from loadtests.campaigns.locusts import Load
from loadtests.recording.outcome import OK, WRONG
from tests.e2e.service import JobClient

pytestmark = pytest.mark.xdist_group("load-users")

ALL = ("ReconstructionJob", "KeepAliveJob", "BelleJob", "Expert", "Indecisive", "Misbehaving")
# What `manage.py run` seeds.
TINY = {"global-tag": "tiny", "layout": "realistic"}
# Executed twice, it restores the original checksums.
CHANGE = 'UPDATE "PayloadIOV" SET checksum = reverse(checksum)'
SPOIL = """
CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.checksum := 'spoilt'; RETURN NEW; END $$;
CREATE TRIGGER spoil BEFORE INSERT ON "PayloadIOV" FOR EACH ROW EXECUTE FUNCTION spoil();
"""


@pytest.fixture
def run(load_service, tmp_path):
    """A function that puts load on the service and returns the recording."""

    def run(users, count, seconds=None, *, spawn_rate=None, processes=1, **options):
        told = TINY | {name.replace("_", "-"): value for name, value in options.items()}
        load = Load(users, count, seconds, spawn_rate=spawn_rate, options=told, processes=processes)
        return locusts.run(f"http://127.0.0.1:{load_service.port}", load, tmp_path / "recording")

    return run


def outcomes(recording):
    """The outcomes by user and name of request."""
    seen = recording.requests
    found = {}
    for user, name, outcome in zip(seen.users, seen.names, seen.outcomes, strict=True):
        found.setdefault((str(user), str(name)), set()).add(str(outcome))
    return found


@contextlib.contextmanager
def database(service):
    connection = psycopg2.connect(EmbeddedPostgres(service.data / "postgres").url)
    with contextlib.closing(connection), connection, connection.cursor() as cursor:
        yield cursor


def test_all_users_get_correct_responses_and_delete_their_data(load_service, run):
    recording = run(dict.fromkeys(ALL, 1) | {"Misbehaving": 3}, 8, indecision=0.1, jobs_per_user=12)
    found = outcomes(recording)
    assert recording.examples == {} and set.union(*found.values()) == {OK}
    assert {user for user, _ in found} == set(ALL)
    names = {name for _, name in found}
    assert {
        "lookup",
        "lookup again",
        "lookup, shape=dict",
        "read back",
        "insert, dry run",
        "browse IOVs",
        "clean up",
    } <= names
    assert "deleted tag" in names and sum(name.startswith("mistake: ") for name in names) > 5
    again = recording.where(recording.names == "lookup again")
    assert set(again.statuses) == {304} and set(again.bytes) == {0}
    assert set(recording.where(recording.names == "lookup").rows) == {10}
    client = JobClient(load_service.port)
    assert [tag["name"] for tag in client.get("globalTags")] == ["tiny"]
    assert [kind["name"] for kind in client.get("pt") if kind["name"].startswith("load-")] == []


def test_reader_describes_wrong_seed_option(run, tmp_path):
    recording = run({"ReconstructionJob": 1}, 1, seed=2, jobs_per_user=10)
    assert outcomes(recording) == {("ReconstructionJob", "globalTags"): {OK}, ("ReconstructionJob", "lookup"): {WRONG}}
    [(name, detail)] = recording.examples.values()
    assert name == "lookup"
    assert detail.startswith(
        "not the rows of --scenario tiny --layout realistic --seed 2 --iov-mode continuous: if global tag"
    )
    assert "payload_url: expected '" in detail
    # locust's own report counts failures of one kind together, and shows the whole description.
    log = (tmp_path / "recording" / "locust.log").read_text()
    [line] = [line for line in log.splitlines() if "GET lookup: FailedRequestError" in line]
    assert (
        "seed it again with `manage.py seed_scenario tiny --layout realistic --seed 2 --reset`, otherwise correct"
        in line
    )


def test_reader_checks_form_of_unknown_data(run):
    recording = run({"ReconstructionJob": 1, "BelleJob": 1}, 2, scenario="none", pattern="last", jobs_per_user=10)
    assert recording.examples == {}
    lookups = recording.where((recording.names == "lookup") | (recording.names == "lookup, shape=dict"))
    assert set(lookups.rows) == {10}


def test_reader_fails_without_its_tag(run):
    recording = run({"ReconstructionJob": 1}, 1, global_tag="tinny", scenario="tiny", jobs_per_user=10)
    assert outcomes(recording) == {("ReconstructionJob", "globalTags"): {WRONG}}
    assert recording.examples[WRONG] == ("globalTags", "no item tinny")


def test_each_user_detects_wrong_response(load_service, run):
    """Rows were changed in the database, or are stored differently from the request, and an unknown tag exists."""
    JobClient(load_service.port).call("POST", "gt", {"name": "no-such-tag", "status": "unlocked"})
    with database(load_service) as cursor:
        cursor.execute(CHANGE)
        cursor.execute(SPOIL)
    try:
        users = ["ReconstructionJob", "KeepAliveJob", "BelleJob", "Expert", "Misbehaving"]
        told = {"pattern": "last", "jobs_per_user": 8}
        found = outcomes(run(dict.fromkeys(users, 1) | {"Misbehaving": 16}, 20, **told))
    finally:
        with database(load_service) as cursor:
            cursor.execute("DROP FUNCTION spoil CASCADE")
            cursor.execute(CHANGE)
        JobClient(load_service.port).call("DELETE", "deleteGlobalTag/no-such-tag")
    wrong = {key for key, kinds in found.items() if WRONG in kinds}
    assert {
        ("ReconstructionJob", "lookup"),
        ("KeepAliveJob", "lookup, kept connection"),
        ("BelleJob", "lookup, shape=dict"),
        ("Expert", "read back"),
    } <= wrong
    # Mistakes are drawn at random; at least one of these two is among 128 of them.
    assert wrong & {("Misbehaving", "mistake: unknown tag"), ("Misbehaving", "mistake: unknown tag, nested")}
    assert not wrong & {
        ("ReconstructionJob", "globalTags"),
        ("Expert", "browse tags"),
        ("Misbehaving", "mistake: no moment"),
    }


def test_start_together_releases_all_users_at_once(run):
    recording = run({"ReconstructionJob": 1}, 30, spawn_rate=15, start_together=True, jobs_per_user=1)
    assert recording.examples == {} and len(recording.jobs) == 30
    # The users were spawned within two seconds.
    assert recording.jobs.begin.max() - recording.jobs.begin.min() < 0.7
    # At least one sample was taken while they were spawned.
    assert 0 < max(sample.users for sample in recording.samples) <= 30


def test_iterations_limit_tags_of_each_indecisive_user_of_two_processes(run):
    told = {"jobs_per_user": 4, "iterations": 3, "indecision": 0.1, "pattern": "run-storm"}
    recording = run({"ReconstructionJob": 10, "Indecisive": 1}, 44, shape="storm", processes=2, **told)
    assert recording.examples == {}
    assert (recording.names == "create tag").sum() == (recording.names == "delete tag").sum() == 4 * 3
    assert (recording.jobs.users == "ReconstructionJob").sum() == 40 * 4


def test_readers_and_writers_do_not_replace_writers_after_their_iterations(run):
    # Only readers pause.
    told = {"iterations": 2, "indecision": 0.1, "pause": 60}
    users = {"ReconstructionJob": 1, "Indecisive": 1}
    recording = run(users, 250, 12, shape="readers-and-writers", **told)
    assert recording.examples == {}
    # Two writers, whose number follows the peak; the number of readers changes every second.
    assert (recording.names == "create tag").sum() == 2 * 2
    assert (recording.jobs.users == "ReconstructionJob").sum() > 0
