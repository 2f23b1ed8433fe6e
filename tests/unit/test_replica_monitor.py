"""The threads that monitor replicas: no error ends them."""

import pytest

from cdb_rest.connections.replicas import monitor
from cdb_rest.connections.replicas.replica import Replica


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_look_that_fails_in_an_unforeseen_way_is_not_the_last(monkeypatch):
    replica = Replica("replica_1")
    seen = []

    def check(_monitor):
        seen.append(replica.is_in_rotation)
        if len(seen) == 2:
            raise OSError("no descriptor is left")
        if len(seen) == 3:
            # The one way to end such a thread.
            raise SystemExit
        replica.enter()

    monkeypatch.setattr(monitor, "CHECK_INTERVAL_SECONDS", 0)
    monkeypatch.setattr(monitor.Monitor, "check", check)
    monitor.start(replica).join(10)
    assert seen == [False, True, False]
