"""Faults of a streaming replica that the service reads from, and of the primary beside it."""

import time

from loadtests.chaos.faults import freeze_postgresql, kill_postgresql, nothing
from loadtests.chaos.stage import Fault, Stage

# How long a stopped replica is down.
DOWN_SECONDS = 3


def kill_replica(stage: Stage) -> float:
    """Kill all processes of the replica at once; it is started again and catches up."""
    stage.standby.kill()
    return _start_again(stage)


def stop_replica(stage: Stage) -> float:
    """Shut the replica down and start it again."""
    stage.standby.stop()
    return _start_again(stage)


def _start_again(stage: Stage) -> float:
    time.sleep(DOWN_SECONDS)
    stage.standby.start()
    return time.monotonic()


def freeze_replica(stage: Stage) -> float:
    """Freeze the replica: the kernel accepts connections, but nothing responds."""
    with stage.standby.frozen():
        time.sleep(stage.seconds)
    return time.monotonic()


def pause_replay(stage: Stage) -> float:
    """Pause replay on the replica, which still receives WAL, and then resume it."""
    with stage.standby.replay_paused():
        time.sleep(stage.seconds)
    return time.monotonic()


REPLICA_FAULTS = [
    Fault("replica", "no fault, reading from a streaming replica", "the end", nothing, with_replica=True),
    Fault(
        "replica-kill", "the replica killed (SIGKILL) and started again", "its start", kill_replica, with_replica=True
    ),
    Fault("replica-restart", "the replica shut down and started again", "its start", stop_replica, with_replica=True),
    Fault("replica-freeze", "the replica frozen, as if unreachable", "it continues", freeze_replica, with_replica=True),
    Fault("replica-lag", "replay paused on the replica", "replay resumes", pause_replay, with_replica=True),
    Fault(
        "primary-freeze",
        "the primary frozen, the replica not",
        "the primary continues",
        freeze_postgresql,
        with_replica=True,
    ),
    Fault(
        "primary-kill",
        "the primary killed (SIGKILL), the replica not",
        "the primary executes a statement on a new connection",
        kill_postgresql,
        with_replica=True,
    ),
]
