"""What locust is given: `locust -f loadtests/locustfile.py`."""

import sys
from pathlib import Path
from typing import Any

# locust puts the directory of this file into the path, not the one above it.
sys.path.insert(0, str(Path(__file__).parents[1]))

import gevent
from locust import events, runners
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner
from locust.web import WebUI

from loadtests.recording.writer import Writer
from loadtests.shapes.shapes import Endurance, Ramp, ReadersAndWriters, Smoke, Steady, Storm  # noqa: F401
from loadtests.users import together
from loadtests.users.base import CheckedUser
from loadtests.users.iterations import Iterations
from loadtests.users.misbehaving import Misbehaving  # noqa: F401
from loadtests.users.readers import BelleJob, KeepAliveJob, ReconstructionJob  # noqa: F401
from loadtests.users.subject import subject_of
from loadtests.users.writers import Expert, Indecisive  # noqa: F401

LOOK_SECONDS = 0.1
# Seconds without a word from a process until the master gives it up. On a busy machine a process may be silent for some seconds;
# given up after three, as is locust's default, it would end the test too early, or be sent its users once more.
runners.HEARTBEAT_LIVENESS = 60
# Seconds until a process announces itself to the master once more. The master takes that for another process, and if the test has
# begun, it sends the users once more; locust's default is five, which a busy machine exceeds.
runners.CONNECT_TIMEOUT = 60
# Who takes part in this shape where nobody was named.
READERS_AND_WRITERS = ("ReconstructionJob", "Indecisive")


@events.init.add_listener
def prepare(environment: Environment, web_ui: WebUI | None, **_: Any) -> None:
    """Let jobs come to their end when a test does, and take the shape that was named, where locust would take any."""
    options = environment.parsed_options
    # gevent's clock stood still while modules were imported, and --run-time, which is counted from it, would be over too soon.
    gevent.get_hub().loop.update_now()
    if web_ui:
        # Fields in their order, not by the alphabet, and first the users that there are most of.
        kinds = sorted(environment.available_user_classes.items(), key=lambda item: -item[1].weight)
        environment.available_user_classes = dict(kinds)
        web_ui.app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}
    environment.stop_timeout = environment.stop_timeout or options.patience
    environment.shape_class = None
    if options.shape:
        shapes = {shape.plan_name: shape for shape in environment.available_shape_classes.values()}
        environment.shape_class = shapes[options.shape]
        environment.shape_class.runner = environment.runner
        if isinstance(environment.shape_class, ReadersAndWriters) and not options.user_classes:
            kinds = environment.available_user_classes
            environment.user_classes = [kinds[name] for name in READERS_AND_WRITERS]
        environment.shape_class.settle(options)
        # Else locust's own default, which is one user, would be the peak.
        options.num_users = environment.shape_class.plan.users
    Indecisive.iterations = Iterations(environment)
    if options.headless and not isinstance(environment.runner, WorkerRunner):
        # Drawing takes a while the first time, and the time of a run begins with it. In the UI it is not known yet of what.
        subject_of(options)


@events.test_start.add_listener
def begin(environment: Environment, **_: Any) -> None:
    """Write down what comes, and end when all users have done what they were to do."""
    options, runner = environment.parsed_options, environment.runner
    together.all_there.clear()
    if environment.shape_class and not isinstance(runner, WorkerRunner):
        environment.shape_class.settle(options)
    # Before there are users, who would be late otherwise.
    subject_of(options)
    Indecisive.iterations.begin(options.iterations)
    if options.record and not isinstance(runner, MasterRunner):
        CheckedUser.writer = Writer(Path(options.record))
    if (options.jobs_per_user or options.iterations) and not isinstance(runner, WorkerRunner):
        gevent.spawn(_end_when_idle, environment)


@events.spawning_complete.add_listener
def all_there(**_: Any) -> None:
    """Those who wait for each other begin."""
    together.begin()


@events.test_stop.add_listener
def end(environment: Environment, **_: Any) -> None:
    """Nothing is written after a test."""
    if environment.shape_class:
        environment.shape_class.restore()
    if CheckedUser.writer:
        CheckedUser.writer.close()
        CheckedUser.writer = None


def _end_when_idle(environment: Environment) -> None:
    runner = environment.runner
    # Before that, a master has not heard from its workers, and counts no users.
    together.all_there.wait()
    while runner.user_count:
        gevent.sleep(LOOK_SECONDS)
    if environment.web_ui:
        runner.stop()
    else:
        runner.quit()
