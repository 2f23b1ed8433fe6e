"""The locustfile: users, shapes and event handlers for `locust -f loadtests/locustfile.py`."""

import sys
from pathlib import Path
from typing import Any

# locust adds the directory of this file to the path, not its parent.
sys.path.insert(0, str(Path(__file__).parents[1]))

import gevent
from locust import events, runners
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner
from locust.web import WebUI

from loadtests.recording import Writer, now
from loadtests.shapes import SHAPES, ReadersAndWriters, Storm  # noqa: F401
from loadtests.users.base import CheckedUser
from loadtests.users.misbehaving import Misbehaving  # noqa: F401
from loadtests.users.readers import BelleJob, KeepAliveJob, ReconstructionJob, SingleRequest  # noqa: F401
from loadtests.users.subject import Subject
from loadtests.users.writers import Expert, Indecisive  # noqa: F401

CHECK_INTERVAL_SECONDS = 0.1
# The master removes a worker process after so many seconds without a heartbeat. On a busy machine a process may
# be silent for some seconds. With locust's default of three, the test would end too early, or the users would
# be sent to the worker twice.
runners.HEARTBEAT_LIVENESS = 60
# A worker process announces itself to the master again after so many seconds. The master takes that for another
# process and, if the test has begun, sends the users again. A busy machine exceeds locust's default of five
# seconds.
runners.CONNECT_TIMEOUT = 60
# The default users of this shape.
READERS_AND_WRITERS = ("ReconstructionJob", "Indecisive")


@events.init.add_listener
def prepare(environment: Environment, web_ui: WebUI | None, **_: Any) -> None:
    """Let jobs finish when a test ends, and select the shape by --shape (locust would take any)."""
    options = environment.parsed_options
    # gevent's clock is not updated during imports. --run-time starts with it and would end too early.
    gevent.get_hub().loop.update_now()
    if web_ui:
        # The UI shows fields in the order of definition, not alphabetically, and users by weight.
        kinds = sorted(environment.available_user_classes.items(), key=lambda item: -item[1].weight)
        environment.available_user_classes = dict(kinds)
        web_ui.app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}
    environment.stop_timeout = environment.stop_timeout or options.patience
    environment.shape_class = None
    if options.shape:
        kind = SHAPES[options.shape]
        environment.shape_class = environment.available_shape_classes[kind.__name__]
        environment.shape_class.runner = environment.runner
        if kind is ReadersAndWriters and not options.user_classes:
            kinds = environment.available_user_classes
            environment.user_classes = [kinds[name] for name in READERS_AND_WRITERS]
        environment.shape_class.settle(options)
        # Otherwise locust's default of one user would be the peak.
        options.num_users = environment.shape_class.users
    if options.headless and not isinstance(environment.runner, WorkerRunner):
        # Generating the file of expected rows takes time once, and must not be part of the run. In the UI the options
        # are not known yet.
        Subject(options)


@events.test_start.add_listener
def begin(environment: Environment, **_: Any) -> None:
    """Open the recording, and end the test when all users are done, if their jobs are limited."""
    options, runner = environment.parsed_options, environment.runner
    CheckedUser.all_there.clear()
    # Before users are spawned, which would be late otherwise, and in a thread, so that heartbeats continue.
    environment.subject = gevent.get_hub().threadpool.apply(Subject, (options,))
    if options.record and not isinstance(runner, MasterRunner):
        CheckedUser.writer = Writer(Path(options.record))
    if (options.jobs_per_user or options.iterations) and not isinstance(runner, WorkerRunner):
        gevent.spawn(_end_when_idle, environment)


@events.spawning_complete.add_listener
def all_there(**_: Any) -> None:
    """Release the users that wait for each other (--start-together)."""
    CheckedUser.all_since = now()
    CheckedUser.all_there.set()


@events.test_stop.add_listener
def end(environment: Environment, **_: Any) -> None:
    """Restore the shape and close the recording."""
    if environment.shape_class:
        environment.shape_class.restore()
    if CheckedUser.writer:
        CheckedUser.writer.close()
        CheckedUser.writer = None


def _end_when_idle(environment: Environment) -> None:
    runner = environment.runner
    # Until then a master has no reports from its workers and counts no users.
    CheckedUser.all_there.wait()
    # The master waits for their reports for a limited time. On a busy machine, worker processes may need longer.
    while isinstance(runner, MasterRunner) and (runner.clients.ready or runner.clients.spawning):
        gevent.sleep(CHECK_INTERVAL_SECONDS)
    while runner.user_count:
        gevent.sleep(CHECK_INTERVAL_SECONDS)
    if environment.web_ui:
        runner.stop()
    else:
        runner.quit()
