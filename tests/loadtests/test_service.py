"""The child processes of the harness."""

import signal
import subprocess

import psutil
import pytest

from cdb.processes import signals
from loadtests import service
from loadtests.harness import Harness
from loadtests.standby import Standby


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_at_start_of_process_leaves_none(monkeypatch, number):
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM)
    handlers = {number: signal.getsignal(number) for number in numbers}
    processes = []

    def start_and_signal(*arguments):
        processes.append(start(*arguments))
        signal.raise_signal(number)
        return processes[0]

    start = service.start
    monkeypatch.setattr(service, "start", start_and_signal)
    service.prepare_process()
    try:
        with pytest.raises(KeyboardInterrupt), service.started(["sleep", "60"], None, subprocess.DEVNULL):
            pytest.fail("the signal was lost")
    finally:
        signals.install()
        for other, handler in handlers.items():
            signal.signal(other, handler)
    assert not psutil.pid_exists(processes[0].pid)


def test_replica_of_an_earlier_run_is_replaced(open_directory):
    harness = Harness(open_directory / "data")
    harness.data.mkdir()
    with harness.running_database():
        for _ in range(2):
            with Standby(harness.data, harness.data / "standby").running() as standby:
                standby.wait_until_caught_up()
