"""The child processes of the harness."""

from loadtests.harness import Harness
from loadtests.standby import Standby


def test_replica_of_an_earlier_run_is_replaced(open_directory):
    harness = Harness(open_directory / "data")
    harness.data.mkdir()
    with harness.running_database():
        for _ in range(2):
            with Standby(harness.data, harness.data / "standby").running() as standby:
                standby.wait_until_caught_up()
