"""What locust is given: `locust -f loadtests/locustfile.py`."""

import sys
from pathlib import Path
from typing import Any

# locust puts the directory of this file into the path, not the one above it.
sys.path.insert(0, str(Path(__file__).parents[1]))

import gevent
from locust import events
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from loadtests.recording.writer import Writer
from loadtests.users.base import CheckedUser
from loadtests.users.reconstruction import ReconstructionJob  # noqa: F401

LOOK_SECONDS = 0.1


@events.init.add_listener
def prepare(environment: Environment, **_: Any) -> None:
    """Let jobs come to their end when a test does."""
    environment.stop_timeout = environment.stop_timeout or environment.parsed_options.patience


@events.test_start.add_listener
def begin(environment: Environment, **_: Any) -> None:
    """Write down what comes, and end when all users have done what they were to do."""
    options, runner = environment.parsed_options, environment.runner
    if options.record and not isinstance(runner, MasterRunner):
        CheckedUser.writer = Writer(Path(options.record))
    if options.jobs_per_user and not isinstance(runner, WorkerRunner):
        gevent.spawn(_end_when_idle, environment)


@events.test_stop.add_listener
def end(**_: Any) -> None:
    """Nothing is written after a test."""
    if CheckedUser.writer:
        CheckedUser.writer.close()
        CheckedUser.writer = None


def _end_when_idle(environment: Environment) -> None:
    runner = environment.runner
    while runner.state != "running":
        gevent.sleep(LOOK_SECONDS)
    while runner.user_count:
        gevent.sleep(LOOK_SECONDS)
    if environment.web_ui:
        runner.stop()
    else:
        runner.quit()
