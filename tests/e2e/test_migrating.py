"""Migrations while the service is in use."""

import contextlib
import re
import subprocess
import sys
import threading
import time

import psycopg2
import pytest

from cdb.env import ROOT
from tests.e2e.faults import LOOKUP
from tests.e2e.service import JobClient


@contextlib.contextmanager
def reader(service):
    """A transaction that has read the tags and does not end: a migration that changes their table has to wait for it."""
    url = f"postgresql://cdb@/cdb?host={service.data}/postgres/socket"
    with contextlib.closing(psycopg2.connect(url)) as holder:
        holder.cursor().execute('SELECT FROM "GlobalTag"')
        yield holder


@pytest.fixture
def lookups(fresh):
    """A service that is asked all the time; every answer has to be 200."""
    service = fresh().start()
    over = threading.Event()
    statuses = []

    def ask():
        while not over.is_set():
            statuses.append(JobClient(service.port).call("GET", LOOKUP)[0])
            time.sleep(0.05)

    asking = threading.Thread(target=ask)
    asking.start()
    yield service
    over.set()
    asking.join()
    assert set(statuses) == {200} and len(statuses) > 20


def migrate(service, *arguments, program=("manage.py",)):
    """`manage.py migrate`, started, with a migration that the service does not know yet."""
    return subprocess.Popen(
        [sys.executable, *program, "migrate", "--settings", "tests.e2e.later.settings", *arguments],
        cwd=ROOT,
        env=service.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_migration_steps_back_from_a_long_reader_and_goes_through_after_it(lookups):
    with reader(lookups) as holder:
        migrating = migrate(lookups)
        said = migrating.stderr.readline()
        assert re.match(r"A table is in use; retrying in \d+ s \(attempt 1 of 10\)", said), said
        assert migrating.poll() is None
        holder.rollback()
        _, errors = migrating.communicate(timeout=60)
        assert migrating.returncode == 0, errors
    assert migrate(lookups, "later", "zero").wait(60) == 0


KILLED_BEFORE_THE_RECORD = """
import os
from django.core.management import call_command
from django.db.migrations.recorder import MigrationRecorder
record = MigrationRecorder.record_applied
MigrationRecorder.record_applied = lambda self, app, name: os._exit(9) if app == "auth" else record(self, app, name)
call_command("migrate", verbosity=0)
"""


def test_a_migration_that_is_killed_before_it_is_recorded_has_not_been_made(fresh):
    service = fresh(is_first_start=True)
    assert service.manage("shell", "-c", KILLED_BEFORE_THE_RECORD).returncode == 9
    migrated = service.manage("migrate")
    assert migrated.returncode == 0, migrated.stderr
