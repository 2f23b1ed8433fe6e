"""Concurrent writers against several processes, and clients that disconnect in the middle."""

import json
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.service import JobClient
from tests.histories.race_proof import RaceProof
from tests.histories.writers import Race

WRITERS = 20


class Connection(JobClient):
    """A client that comes and goes."""

    def call(self, method, path, body=None, headers=None):
        return super().call(method, path, ... if body is None else body, headers)

    def close(self):
        pass


def test_writers_against_several_processes_leave_what_some_order_of_them_leaves(service):
    race = Race(lambda: Connection(service.port), seed=3, tags=3)
    race.run(writers=WRITERS, writes_each=8)
    assert RaceProof(race, Connection(service.port)).verify() > WRITERS * 2
    assert set(race.statuses) <= {200, 404, 409}
    checked = service.manage("check_intervals")
    assert checked.returncode == 0, checked.stderr


@pytest.fixture
def insert(client):
    """A request that inserts 500 rows, as bytes, and the number of rows that are there."""
    client.call("POST", "gt", {"name": "vanishing", "status": "unlocked"})
    client.call("POST", "pt", {"name": "Vanishing"})

    def make(first):
        rows = [
            {
                "global_tag": "vanishing",
                "payload_type": "Vanishing",
                "payload_url": f"file{number}",
                "checksum": "",
                "since": [number, 0],
                "until": "next",
            }
            for number in range(first, first + 500)
        ]
        body = json.dumps(rows).encode()
        head = (
            f"POST /api/cdb_rest/payload-iovs/insert HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    return make


def test_a_client_that_vanishes_leaves_all_or_nothing(service, client, insert):
    chance = random.Random(7)
    for attempt in range(12):
        request = insert(attempt * 500)
        # Some vanish while they send, the others while they are served.
        sent = len(request) if attempt % 3 else chance.randrange(len(request))
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(request[:sent])
            time.sleep(chance.random() * 0.1)
    status, last = JobClient(service.port).call("POST", "pt", {"name": "The_end"})
    assert status == 200, last
    # What arrived whole is carried out, be it late; nothing more comes when nothing has come for a while.
    count, before = client.get("globalTag/vanishing?light")["payload_iov_count"], None
    while count != before:
        time.sleep(3)
        count, before = client.get("globalTag/vanishing?light")["payload_iov_count"], count
    iovs = client.get("globalTag/vanishing")["payload_lists"][0]["payload_iov"]
    blocks = {iov["major_iov"] // 500 for iov in iovs}
    assert len(iovs) == 500 * len(blocks) > 0
    assert not {0, 3, 6, 9} & blocks
    assert count == len(iovs)
    assert client.get("global-tags/vanishing/changes")["results"][0]["payload_iovs_after"] == 500


def test_a_repeated_request_gets_the_first_answer_also_while_the_first_is_at_work(service, insert):
    key = {"Idempotency-Key": "5f0c9a3e"}
    rows = json.loads(insert(10**6).split(b"\r\n\r\n", 1)[1])
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda _: JobClient(service.port).call("POST", "payload-iovs/insert", rows, key), range(6))
        )
    assert {status for status, _ in answers} == {200}
    assert all(answer == answers[0][1] for _, answer in answers)
    assert len({row["added"]["id"] for row in answers[0][1]["rows"]}) == 500
