"""Concurrent writers in one process, on separate connections; tests/e2e has them against several processes."""

import pytest
from django.db import connection

from cdb_rest.maintenance.repair import find_faults
from tests.conftest import Api
from tests.histories.oracle import Row
from tests.histories.race_proof import RaceProof
from tests.histories.writers import Race, Write

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 20


class Connection:
    """A client inside of this process, with the database connection of its thread."""

    def __init__(self):
        self._api = Api()

    def call(self, method, path, body, headers):
        answer = self._api(method, path, body, **headers)
        return answer.status, answer.json

    def close(self):
        connection.close()


@pytest.mark.parametrize(("tags", "mode"), [(1, "continuous"), (3, "continuous"), (2, "discrete")])
def test_writers_at_the_same_time_leave_what_some_order_of_them_leaves(settings, tags, mode):
    settings.CDB_IOV_MODE = mode
    race = Race(Connection, seed=tags, tags=tags, discrete=mode == "discrete")
    race.run(writers=WRITERS, writes_each=8)
    assert RaceProof(race, Connection()).verify() > WRITERS * 2
    assert find_faults() == []
    assert set(race.statuses) <= {200, 404, 409}


def test_the_proof_accepts_a_copy_that_a_reversion_made():
    """An IOV moves to another tag, a reversion makes a copy of it, and it comes back to another list and is deleted."""
    race, client = Race(Connection, seed=1, tags=2), Connection()
    race.run(writers=1, writes_each=0)
    (tag, other), (gain, noise) = race.tags, race.types[:2]

    def attach(home, kind, write):
        race.do(client, "PUT", "piov_attach", race._attachment(home, kind, iov_id, race._note(write)))

    row = Row("moving", (5, 0), (8, 0))
    iov_id = race.do(client, "POST", "piov", race._columns(row))["id"]
    attach(tag, noise, Write([(tag, noise, row, False)]))
    revision = race.do(client, "GET", f"global-tags/{tag}/changes")["results"][0]["revision"]
    attach(other, noise, Write([(other, noise, None, False)], gone=iov_id))
    comment = race._note(Write(revision=revision))
    race.do(client, "POST", f"global-tags/{tag}/revert", {"revision": revision, "comment": comment})
    attach(tag, gain, Write([(tag, gain, None, False)], gone=iov_id))
    comment = race._note(Write(gone=row.start))
    race.do(client, "DELETE", f"deletePayloadIOV/{tag}/{gain}/5/0/8/0", None, {"CDB-Comment": comment})
    # Moving changes both tags.
    assert RaceProof(race, client).verify() == 7
