"""Faults of a streaming replica that the service reads from, and of the primary beside it."""

import time

from loadtests.chaos.faults import freeze_postgresql, kill_postgresql, nothing
from loadtests.chaos.stage import Fault, Stage

# How long a replica that ended is away.
AWAY_SECONDS = 3


def kill_replica(stage: Stage) -> float:
    """All of its processes at once; it is started again, and catches up."""
    stage.standby.kill()
    return _start_again(stage)


def stop_replica(stage: Stage) -> float:
    """A fast shutdown, and a start."""
    stage.standby.stop()
    return _start_again(stage)


def _start_again(stage: Stage) -> float:
    time.sleep(AWAY_SECONDS)
    stage.standby.start()
    return time.monotonic()


def freeze_replica(stage: Stage) -> float:
    """Stopped, so that it takes connections and says nothing."""
    with stage.standby.frozen():
        time.sleep(stage.seconds)
    return time.monotonic()


def hold_replica_back(stage: Stage) -> float:
    """It gets all that is written and replays nothing, and then all at once."""
    with stage.standby.lagging():
        time.sleep(stage.seconds)
    return time.monotonic()


REPLICA_FAULTS = [
    Fault("replica", "no fault, reading from a streaming replica", "the end", nothing, with_replica=True),
    Fault(
        "replica-kill", "the replica killed with -9, and started again", "its start", kill_replica, with_replica=True
    ),
    Fault("replica-restart", "the replica shut down, and started again", "its start", stop_replica, with_replica=True),
    Fault("replica-freeze", "the replica stopped, as if unreachable", "it goes on", freeze_replica, with_replica=True),
    Fault("replica-lag", "the replica replays nothing", "it goes on", hold_replica_back, with_replica=True),
    Fault(
        "primary-freeze",
        "the primary stopped, the replica not",
        "the primary goes on",
        freeze_postgresql,
        with_replica=True,
    ),
    Fault(
        "primary-kill",
        "the primary killed with -9, the replica not",
        "the primary answers a statement on a new connection",
        kill_postgresql,
        with_replica=True,
    ),
]
