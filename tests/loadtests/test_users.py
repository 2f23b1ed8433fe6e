"""Every kind of user against the real service: all answers right, and wrong ones found."""

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
# Twice, and all is as it was.
CHANGE = 'UPDATE "PayloadIOV" SET checksum = reverse(checksum)'
SPOIL = """
CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.checksum := 'spoilt'; RETURN NEW; END $$;
CREATE TRIGGER spoil BEFORE INSERT ON "PayloadIOV" FOR EACH ROW EXECUTE FUNCTION spoil();
"""


@pytest.fixture
def run(load_service, tmp_path):
    """Puts load on the service and returns what was recorded."""

    def run(users, count, seconds=None, *, fixed=None, shape=None, spawn_rate=None, processes=1, **options):
        told = TINY | {name.replace("_", "-"): value for name, value in options.items()}
        load = Load(
            users,
            count,
            seconds,
            spawn_rate=spawn_rate,
            options=told,
            shape=shape,
            processes=processes,
            fixed=fixed or {},
        )
        return locusts.run(f"http://127.0.0.1:{load_service.port}", load, tmp_path / "recording")

    return run


def outcomes(recording):
    """The outcomes that each request of each user had."""
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


def test_all_kinds_are_answered_rightly_and_leave_nothing_behind(load_service, run):
    recording = run({}, 8, fixed=dict.fromkeys(ALL, 1) | {"Misbehaving": 3}, indecision=0.1, jobs_per_user=12)
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


def test_another_seed_is_told_plainly_with_what_to_do(run, tmp_path):
    recording = run({"ReconstructionJob": 1}, 1, seed=2, jobs_per_user=10)
    assert outcomes(recording) == {("ReconstructionJob", "globalTags"): {OK}, ("ReconstructionJob", "lookup"): {WRONG}}
    [(name, detail)] = recording.examples.values()
    assert name == "lookup"
    assert detail.startswith(
        "not the rows of --scenario tiny --layout realistic --seed 2 --iov-mode continuous: if global tag"
    )
    assert "payload_url: expected '" in detail
    # In locust's own report, which counts failures of one kind together, nothing is cut off.
    log = (tmp_path / "recording" / "locust.log").read_text()
    [line] = [line for line in log.splitlines() if "GET lookup: FailedRequestError" in line]
    assert (
        "seed it again with `manage.py seed_scenario tiny --layout realistic --seed 2 --reset`, otherwise correct"
        in line
    )


def test_other_data_than_seeded_are_checked_for_their_form(run):
    recording = run({"ReconstructionJob": 1, "BelleJob": 1}, 2, scenario="none", pattern="last", jobs_per_user=10)
    assert recording.examples == {}
    lookups = recording.where((recording.names == "lookup") | (recording.names == "lookup, shape=dict"))
    assert set(lookups.rows) == {10}


def test_a_tag_that_is_not_there_is_a_failure(run):
    recording = run({"ReconstructionJob": 1}, 1, global_tag="tinny", scenario="tiny", jobs_per_user=10)
    assert outcomes(recording) == {("ReconstructionJob", "globalTags"): {WRONG}}
    assert recording.examples[WRONG] == ("globalTags", "no global tag tinny")


def test_every_kind_finds_what_is_wrong(load_service, run):
    """Rows that were changed behind the service's back, or are stored otherwise than sent, and a tag that was not to be."""
    JobClient(load_service.port).call("POST", "gt", {"name": "no-such-tag", "status": "unlocked"})
    with database(load_service) as cursor:
        cursor.execute(CHANGE)
        cursor.execute(SPOIL)
    try:
        users = ["ReconstructionJob", "KeepAliveJob", "BelleJob", "Expert", "Misbehaving"]
        told = {"pattern": "last", "jobs_per_user": 8}
        found = outcomes(run({}, 20, fixed=dict.fromkeys(users, 1) | {"Misbehaving": 16}, **told))
    finally:
        with database(load_service) as cursor:
            cursor.execute("DROP FUNCTION spoil CASCADE")
            cursor.execute(CHANGE)
        JobClient(load_service.port).call("DELETE", "deleteGlobalTag/no-such-tag")
    wrong = {key for key, kinds in found.items() if WRONG in kinds}
    assert {
        ("ReconstructionJob", "lookup"), ("KeepAliveJob", "lookup, kept connection"), ("BelleJob", "lookup, shape=dict"),
        ("Expert", "read back"),
    } <= wrong  # fmt: skip
    # Mistakes are drawn, and either of these is among 128 of them.
    assert wrong & {("Misbehaving", "mistake: unknown tag"), ("Misbehaving", "mistake: unknown tag, nested")}
    assert not wrong & {
        ("ReconstructionJob", "globalTags"),
        ("Expert", "browse tags"),
        ("Misbehaving", "mistake: no moment"),
    }


def test_users_that_wait_for_each_other_begin_together(run):
    recording = run({"ReconstructionJob": 1}, 30, spawn_rate=15, start_together=True, jobs_per_user=1)
    assert recording.examples == {} and len(recording.jobs) == 30
    # They came within two seconds.
    assert recording.jobs.begin.max() - recording.jobs.begin.min() < 0.7
    # The one sample at least that was taken while they came.
    assert 0 < max(sample.users for sample in recording.samples) <= 30


def test_a_storm_of_two_processes_whose_iterations_are_shared(run):
    told = {"jobs_per_user": 4, "iterations": 10, "indecision": 0.1, "pattern": "run-storm"}
    recording = run({"ReconstructionJob": 1}, 44, fixed={"Indecisive": 4}, shape="storm", processes=2, **told)
    assert recording.examples == {}
    assert (recording.names == "create tag").sum() == (recording.names == "delete tag").sum() == 10
    assert (recording.jobs.users == "ReconstructionJob").sum() == 40 * 4
