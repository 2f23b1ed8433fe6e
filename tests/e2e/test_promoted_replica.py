"""A replica that an operator has promoted to a primary."""

import signal

from loadtests.standby import Standby
from tests.e2e.replicated import Pair
from tests.e2e.service import Service


def test_one_that_was_made_a_primary_is_not_read_from(new_directory):
    directory = new_directory()
    directory.chmod(0o711)
    standby = Standby(directory / "data", directory / "standby")
    service = Service(directory / "data", DATABASE_REPLICA_URLS=standby.url, CDB_WORKERS="1")
    try:
        service.start()
        with standby.running():
            pair = Pair(service, standby)
            standby.wait_until_caught_up()
            pair.wait_until_in()
            standby.promote()
            pair.wait_until_in(False)
            assert "it is a primary" in pair.lines("is out of rotation")[-1]
        assert service.stop(signal.SIGINT) in (0, 130)
    finally:
        service.kill_everything()
