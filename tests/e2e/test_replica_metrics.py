"""/metrics about a real streaming replica: in rotation, down, and back."""

from loadtests.standby import Standby
from tests.e2e.counting import Metrics, eventually
from tests.e2e.service import JobClient, Service

LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=9000000&minorIOV=0"


def test_the_replica_is_shown_as_it_is(new_directory):
    directory = new_directory()
    directory.chmod(0o711)
    standby = Standby(directory / "data", directory / "standby")
    service = Service(directory / "data", DATABASE_REPLICA_URLS=standby.url, CDB_WORKERS="2")
    client = JobClient(service.port)

    def state():
        # Asking is what makes a process look after its replicas.
        client.get(LOOKUP)
        found = Metrics(service.port)
        return found.by("cdb_replica_up", "replica").total(), len(found.by("cdb_standbys", "standby"))

    try:
        service.start()
        with standby.running():
            eventually(state, (1, 1))
            for _ in range(20):
                client.get(LOOKUP)
            found = Metrics(service.port)
            assert found.sum("cdb_replica_reads_total", outcome="served") > 0
            assert 0 <= found.sum("cdb_replica_lag_seconds") < 30 and "cdb_standby_lag_bytes{" in found.text
        eventually(state, (0, 0))
        assert "cdb_replica_up{" in Metrics(service.port).text
    finally:
        service.kill_everything()
