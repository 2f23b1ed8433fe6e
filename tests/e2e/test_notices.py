"""Notices while the processes that send them and store changes are killed: each change arrives, in the order of its tag."""

import contextlib
import itertools
import random
import threading
import time

import psycopg2

from tests.e2e.service import JobClient
from tests.receivers import Receiver
from tests.waiting import wait_until

TAGS = [f"notice-{number}" for number in range(3)]
SUBSCRIBE = (
    "from cdb_rest.writes.subscriptions import subscribe; "
    "print(subscribe(actor='test', url='{url}', tags='notice.*', actions=[]).secret)"
)


def end_leases(service):
    """As if the leases of killed processes had passed. Returns whether the database is there, which may still be dying."""
    with contextlib.suppress(psycopg2.OperationalError):
        with psycopg2.connect(host=service.data / "postgres" / "socket", user="cdb", dbname="cdb") as database:
            database.cursor().execute('UPDATE "Subscription" SET next_attempt = now()')
        return True
    return False


def test_no_change_is_lost_when_the_background_process_or_the_database_is_killed_at_any_moment(fresh):
    service = fresh(CDB_WEBHOOK_NETWORKS="127.0.0.0/8,::1/128").start()
    chance = random.Random(53)

    def slow(handler):
        # Kills come before the response, between its parts, and before it is stored.
        time.sleep(chance.uniform(0, 0.4))
        handler.send_response(200)
        handler.end_headers()

    receivers = [Receiver(slow), Receiver(slow)]
    secrets = []
    for receiver in receivers:
        done = service.manage("shell", "-c", SUBSCRIBE.format(url=receiver.url))
        assert done.returncode == 0, done.stderr
        secrets.append(done.stdout.split()[-1])
    client, ended = JobClient(service.port), threading.Event()

    def write():
        for name in TAGS:
            assert client.call("POST", "gt", {"name": name, "status": "unlocked", "author": "test"})[0] == 200
        statuses = itertools.cycle(["locked", "unlocked"])
        while not ended.wait(0.05):
            status = next(statuses)
            for name in TAGS:
                # While the database is away, writes fail.
                with contextlib.suppress(OSError, ValueError):
                    client.call("PUT", f"gt_change_status/{name}/{status}")

    writer = threading.Thread(target=write)
    writer.start()
    for program in ("compiler", "bin/postgres", "compiler"):
        before = len(receivers[0].requests)
        wait_until(lambda before=before: len(receivers[0].requests) > before + 1)
        time.sleep(chance.uniform(0, 1))
        service.programs(program)[0].kill()
        wait_until(lambda: client.call("GET", "gt")[0] == 200)
        wait_until(lambda: end_leases(service))
    ended.set()
    writer.join()
    expected = {
        name: sorted(item["revision"] for item in client.get(f"global-tags/{name}/changes?page_size=1000")["results"])
        for name in TAGS
    }
    assert all(len(revisions) > 2 for revisions in expected.values())
    for receiver, secret in zip(receivers, secrets, strict=True):

        def arrived(receiver=receiver, secret=secret):
            # A repeated change comes again after its first arrival.
            first = dict.fromkeys(receiver.changes(secret))
            return {name: [revision for tag, revision in first if tag == name] for name in TAGS}

        wait_until(lambda arrived=arrived: sum(map(len, arrived().values())) >= sum(map(len, expected.values())), 90)
        assert arrived() == expected
        receiver.close()
    assert service.stop() == 0
