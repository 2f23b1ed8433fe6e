"""The shapes as plain functions of time."""

from types import SimpleNamespace

import pytest

from loadtests.shapes.plans import PLANS, Seen, Target

CALM = Seen(users=10, requests=100, failures=0, p95=20.0)


def planned(name, **told):
    """A plan that has read its options."""
    options = SimpleNamespace(
        num_users=None, run_time=None, scale=1.0, pause=0.0, iterations=0, jobs_per_user=0, start_together=False,
        step_seconds=30.0, slow_milliseconds=1000.0, failing_percent=1.0,
    )  # fmt: skip
    vars(options).update(told)
    plan = PLANS[name]()
    plan.settle(options)
    return plan, options


@pytest.mark.parametrize(
    ("name", "users", "seconds"),
    [("smoke", 10, 20), ("steady", 50, 300), ("endurance", 50, 4 * 3600), ("readers-and-writers", 2500, 360)],
)
def test_shapes_end_after_their_duration(name, users, seconds):
    plan, _ = planned(name)
    assert plan.users == users and plan.target(seconds - 0.1, CALM) and plan.target(seconds, CALM) is None
    assert planned(name, run_time=7)[0].target(7, CALM) is None


@pytest.mark.parametrize("name", [name for name in PLANS if name != "ramp"])
def test_users_option_is_peak_of_shape(name):
    plan, _ = planned(name, num_users=200)
    writers = 2 if name == "readers-and-writers" else 0
    targets = [plan.target(second, CALM) for second in range(int(plan.seconds or 1000))]
    assert max(target.users for target in targets) == 200 + writers
    assert all(target.rate > 0 for target in targets)
    half, _ = planned(name, scale=0.5)
    assert half.users == planned(name)[0].users / 2


def test_ramp_rises_in_ten_steps_and_ends_at_peak():
    plan, _ = planned("ramp", num_users=50, step_seconds=10.0)
    assert [plan.target(second, CALM).users for second in range(0, 100, 10)] == [5 * step for step in range(1, 11)]
    assert plan.target(99.9, CALM) == Target(50, 50)
    assert plan.target(100, CALM) is None and plan.over == "held 50 users"


def test_ramp_ends_when_service_breaks():
    plan, options = planned("ramp", num_users=100)
    slow = CALM._replace(p95=1001.0, users=20)
    assert plan.target(31, CALM).users == 20 and plan.target(40, slow) is None
    assert plan.over == "failed at 20 users: 95 % of the responses took up to 1001 ms"
    plan.settle(options)
    assert plan.over == "" and plan.target(0, CALM._replace(p95=None)).users == 10
    # One failure among 300 requests of a step is none, four are.
    assert plan.target(1, CALM._replace(failures=1)) and plan.target(2, CALM)
    assert plan.target(3, CALM._replace(failures=4)) is None
    assert "5 of 300 requests failed" in plan.over


def test_storm_starts_one_job_of_each_user_at_once():
    plan, options = planned("storm")
    assert plan.target(0, CALM) == plan.target(1e6, CALM) == Target(10_000, 10_000)
    assert options.start_together and options.jobs_per_user == 1
    assert planned("storm", jobs_per_user=3)[1].jobs_per_user == 3


def test_readers_and_writers_follow_numbers_of_study():
    plan, options = planned("readers-and-writers")
    assert (options.pause, options.iterations, plan.writers) == (120.0, 20, 20)
    readers = [plan.target(second, CALM).users - 20 for second in (0, 60, 120, 180, 240, 300, 359.9)]
    assert readers == [0, 500, 1000, 1750, 2500, 1250, 2]
    small, options = planned("readers-and-writers", scale=0.1, pause=5.0)
    assert (options.pause, options.iterations, small.writers, small.users) == (5.0, 20, 2, 250)
    # The rate of each second suffices to reach the next target.
    for second in range(359):
        before, after = (small.target(at, CALM) for at in (second, second + 1))
        assert abs(after.users - before.users) <= after.rate + 1
