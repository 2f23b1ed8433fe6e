"""The recordings of locust, compared with the log of a server whose faults are known."""

import numpy
import pytest

from loadtests.recording import outcome
from tests.loadtests.harness_runs import Case, play_all

pytestmark = pytest.mark.xdist_group("harness")

EVERY = 10
# The outcome that the client must record for each fault of the server.
OUTCOME_OF_FAULT = {
    "error --status 500": outcome.SERVER_ERROR,
    "error --status 504": outcome.OVERLOADED,
    "error --status 404": outcome.NOT_FOUND,
    "error --status 409": outcome.CLIENT_ERROR,
    "slow-error --status 503 --seconds 0.2": outcome.SERVER_ERROR,
    "close": outcome.NO_RESPONSE,
    "reset": outcome.NO_RESPONSE,
    "truncated": outcome.NO_RESPONSE,
    "redirect": outcome.WRONG,
    "html": outcome.WRONG,
    "wrong-value": outcome.WRONG,
    "empty": outcome.WRONG,
}
STALL_SECONDS, STALLED_RATE = 2.0, 40.0
STALL = f"stall --since 1 --seconds {STALL_SECONDS}"
OPEN = {"start-jobs": "at a constant rate"}
CASES = {
    **{fault: Case(f"{fault} --every {EVERY}") for fault in OUTCOME_OF_FAULT},
    "delay": Case("delay --seconds 0.05", users=1),
    "slow-body": Case("slow-body --seconds 1", users=10, options={"jobs-per-user": 1}),
    "two processes": Case("delay --seconds 0.01", users=4, processes=2),
    "open stall": Case(STALL, users=2, options=OPEN | {"jobs-per-second": STALLED_RATE / 2, "jobs-per-user": 100}),
    "closed stall": Case(STALL, users=5, options={"pause": 0.02, "jobs-per-user": 80}),
    "silent": Case("silent", users=3, options=OPEN | {"jobs-per-second": 20, "jobs-per-user": 40, "patience": 1}),
    "too many": Case(
        "silent",
        users=1,
        options=OPEN | {"jobs-per-second": 20, "jobs-per-user": 30, "patience": 4, "most-in-progress": 5},
    ),
    "trickle": Case("slow-body --seconds 4", users=2, options={"jobs-per-user": 1, "patience": 1}),
    "end": Case("delay --seconds 0.7", users=5, seconds=2, options={"patience": 1}),
    "refuse": Case(
        "refuse --since 1 --seconds 1", users=1, options=OPEN | {"jobs-per-second": 20, "jobs-per-user": 60}
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return play_all(CASES, tmp_path_factory.mktemp("harness"))


@pytest.mark.parametrize("name", [name for name in CASES if name != "refuse"])
def test_client_and_server_count_same_requests(runs, name):
    assert len(runs[name].requests) == len(runs[name].server) > 0


@pytest.mark.parametrize("fault", OUTCOME_OF_FAULT)
def test_recording_names_outcome_of_each_fault(runs, fault):
    seen = runs[fault]
    number = len(seen.server) // EVERY
    assert number > 0
    assert seen.did == {"none": len(seen.server) - number, fault.split()[0]: number}
    assert seen.outcomes == {outcome.OK: len(seen.server) - number, OUTCOME_OF_FAULT[fault]: number}
    name, detail = seen.recording.examples[OUTCOME_OF_FAULT[fault]]
    assert name in ("globalTags", "lookup")
    assert detail


def test_client_reads_slow_error_completely(runs):
    assert "broken on purpose" in runs["slow-error --status 503 --seconds 0.2"].recording.examples["5xx"][1]
    failed = runs["slow-error --status 503 --seconds 0.2"].requests
    assert failed.milliseconds[failed.statuses == 503].min() >= 200


def test_job_ends_after_failed_request(runs):
    seen = runs["error --status 500"]
    jobs = seen.recording.jobs
    assert (jobs.outcomes != outcome.OK).sum() == seen.outcomes[outcome.SERVER_ERROR]
    assert jobs.rows.sum() == len(seen.server)


def test_percentiles_include_fixed_delay_of_server(runs):
    times = runs["delay"].requests.milliseconds
    assert times.min() >= 50
    assert numpy.percentile(times, 50) < 150
    assert numpy.percentile(times, 99) < 500


def test_server_receives_request_between_begin_and_end(runs):
    seen = runs["delay"]
    came = numpy.array([request["came"] for request in seen.server]) - seen.recording.origin
    # The server's clock is the wall clock of the same machine.
    assert (seen.requests.begin <= came + 0.005).all()
    assert (came <= seen.requests.end).all()


def test_response_time_includes_last_byte(runs):
    times = runs["slow-body"].requests.milliseconds
    assert times.min() >= 1000
    assert numpy.percentile(times, 50) < 3000
    assert runs["slow-body"].outcomes == {outcome.OK: 20}


def test_patience_limits_whole_response(runs):
    seen = runs["trickle"]
    assert seen.outcomes == {outcome.NO_RESPONSE: 2}
    assert 1000 <= seen.requests.milliseconds.min() <= seen.requests.milliseconds.max() < 3000


def test_recording_joins_files_of_all_processes(runs):
    seen = runs["two processes"]
    assert seen.outcomes == {outcome.OK: 4 * 20 * 2}
    assert (numpy.diff(seen.recording.due) >= 0).all()


@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.5])
def test_open_model_counts_stall_for_all_due_jobs(runs, seconds):
    """Jobs that were due in the window waited until its end: those of its first 2 s - x took longer than x."""
    seen = runs["open stall"]
    first = seen.requests.where(seen.requests.names == "globalTags")
    slow = (first.milliseconds > seconds * 1000).sum()
    # On a busy machine, others wait, too.
    assert slow >= STALLED_RATE * (STALL_SECONDS - seconds) - 2


def test_closed_model_counts_stall_once_for_each_user(runs):
    seen = runs["closed stall"]
    assert (seen.requests.milliseconds > 500).sum() == CASES["closed stall"].users
    assert numpy.percentile(seen.requests.milliseconds, 50) < 500


def test_jobs_start_at_their_rate_without_responses(runs):
    seen, case = runs["silent"], CASES["silent"]
    assert set(seen.outcomes) == {outcome.NO_RESPONSE}
    due, rate = seen.requests.due, case.options["jobs-per-second"] * case.users
    assert len(due) == case.options["jobs-per-user"] * case.users
    for moment in numpy.linspace(0, due[-1], 20):
        assert abs((due <= moment).sum() - rate * moment) <= case.users
    assert seen.requests.milliseconds.min() >= 1000


def test_recording_counts_jobs_that_were_not_sent(runs):
    seen, case = runs["too many"], CASES["too many"]
    jobs = seen.recording.jobs
    assert len(seen.server) == 5
    unsent = (jobs.outcomes == outcome.NOT_SENT).sum()
    assert len(jobs) == unsent + 5 == case.options["jobs-per-user"]
    assert outcome.NOT_SENT in seen.recording.examples


def test_recording_has_requests_cut_short_at_end(runs):
    """Every request that reached the server is recorded, whether the users waited for its response or not."""
    seen = runs["end"]
    unfinished = sum("went" not in request for request in seen.server)
    assert seen.outcomes[outcome.NO_RESPONSE] >= unfinished
    assert len(seen.recording.jobs) >= CASES["end"].users


def test_users_continue_after_refused_connections(runs):
    seen, case = runs["refuse"], CASES["refuse"]
    refused = seen.outcomes[outcome.NO_RESPONSE]
    assert len(seen.requests) == len(seen.server) + refused
    # 20 per second were due while the server refused connections for a second; on a busy machine, fewer began.
    assert refused >= 3
    assert "refused" in seen.recording.examples[outcome.NO_RESPONSE][1].lower()
    assert len(seen.recording.jobs) == case.options["jobs-per-user"]


def test_recording_has_samples_of_generator(runs):
    for name in ("open stall", "closed stall", "silent"):
        samples = runs[name].recording.samples
        assert samples
        assert 0 < max(sample.cpu for sample in samples) < 1.5
    # There is a sample each second, so that one of them may be before the middle of the stall, and the next one after it.
    assert max(sample.in_progress for sample in runs["open stall"].recording.samples) > STALLED_RATE / 2
