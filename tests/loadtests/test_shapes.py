"""The load shapes, with a stub of locust, which would replace parts of Python's standard library in this process."""

import importlib.util
import sys
from types import SimpleNamespace

import pytest

from cdb.env import ROOT

NAMES = ("storm", "readers-and-writers", "endurance")


class LoadTestShape:
    def reset_time(self):
        self.seconds_run = 0

    def get_run_time(self):
        return self.seconds_run


@pytest.fixture
def shapes(monkeypatch):
    monkeypatch.setitem(sys.modules, "locust", SimpleNamespace(LoadTestShape=LoadTestShape, User=object))
    specification = importlib.util.spec_from_file_location("shapes", ROOT / "loadtests" / "shapes.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.SHAPES


@pytest.fixture
def started(shapes):
    """A function that starts a test with a shape and options, and returns the shape."""

    def started(name, **told):
        options = SimpleNamespace(
            num_users=None, run_time=None, pause=0.0, iterations=0, jobs_per_user=0, start_together=False,
        )  # fmt: skip
        vars(options).update(told)
        shape = shapes[name]()
        writer, reader = (type(kind, (), {"fixed_count": 0}) for kind in ("Indecisive", "ReconstructionJob"))
        environment = SimpleNamespace(parsed_options=options)
        stats = SimpleNamespace(clear_all=lambda: None)
        shape.runner = SimpleNamespace(environment=environment, user_classes=[writer, reader], stats=stats)
        shape.reset_time()
        return shape

    return started


def tick(shape, seconds):
    """The result of a tick at a time."""
    shape.seconds_run = seconds
    return shape.tick()


def test_names_of_all_shapes(shapes):
    assert tuple(shapes) == NAMES


@pytest.mark.parametrize(
    ("name", "users", "seconds"),
    [("endurance", 50, 4 * 3600), ("readers-and-writers", 2500, 360)],
)
def test_shapes_end_after_their_duration(started, name, users, seconds):
    shape = started(name)
    assert shape.users == users and tick(shape, seconds - 0.1) and tick(shape, seconds) is None
    assert tick(started(name, run_time=7), 7) is None


@pytest.mark.parametrize("name", NAMES)
def test_users_option_is_peak_of_shape(started, name):
    shape = started(name, num_users=200)
    writers = 2 if name == "readers-and-writers" else 0
    targets = [tick(shape, second) for second in range(int(shape.seconds or 1000))]
    assert max(users for users, _ in targets) == 200 + writers
    assert all(rate > 0 for _, rate in targets)


def test_storm_starts_one_job_of_each_user_at_once(started):
    shape = started("storm")
    assert tick(shape, 0) == tick(shape, 1e6) == (10_000, 10_000)
    assert shape.options.start_together and shape.options.jobs_per_user == 1
    assert started("storm", jobs_per_user=3).options.jobs_per_user == 3


def test_readers_and_writers_follow_numbers_of_study(started):
    shape = started("readers-and-writers")
    assert (shape.options.pause, shape.options.iterations, shape.writers) == (120.0, 20, 20)
    readers = [tick(shape, second)[0] - 20 for second in (0, 60, 120, 180, 240, 300, 359.9)]
    assert readers == [0, 500, 1000, 1750, 2500, 1250, 2]
    small = started("readers-and-writers", num_users=250, pause=5.0)
    assert (small.options.pause, small.options.iterations, small.writers, small.users) == (5.0, 20, 2, 250)
    # The rate of each second suffices to reach the next target.
    for second in range(359):
        (before, _), (after, rate) = (tick(small, at) for at in (second, second + 1))
        assert abs(after - before) <= rate + 1


def test_writers_have_a_fixed_number_until_the_test_ends(started):
    shape = started("readers-and-writers")
    assert [kind.fixed_count for kind in shape.runner.user_classes] == [20, 0]
    shape.restore()
    assert [kind.fixed_count for kind in shape.runner.user_classes] == [0, 0]
