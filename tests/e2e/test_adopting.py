"""Adoptions of databases of nopayloaddb as processes: broken at any point, from a standby, with a password, beside a service.

Another transaction holds a copy at a point in the source or in the target, so that what happens there does not depend on time.
"""

import contextlib
import os
import signal
import threading
import uuid
from datetime import datetime

import psutil
import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from cdb_rest.rules.moment import OPEN
from loadtests.service import free_port
from tests.adopt.old_database import OldDatabase
from tests.e2e.service import Service
from tests.e2e.standby import Standby
from tests.e2e.test_clients import CppClient
from tests.e2e.test_commands import begin
from tests.postgres import FAST
from tests.waiting import wait_until

PASSWORD = uuid.uuid4().hex
TAGS, LISTS, ROWS = 10, 2, 1000
COPY = ("--copy", "--mode", "continuous")
EQUAL = f"Payload lists: {TAGS * LISTS} equal, 0 explained, 0 unexplained."
COPIED = ("GlobalTag", "PayloadType", "PayloadList", "PayloadIOV")

COLUMNS = "id, payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end"
FILL = f"""INSERT INTO {{PayloadIOV}} ({COLUMNS}, comb_iov, created, updated, payload_list_id)
SELECT list.id * {ROWS} + n, 'file_' || n, 'abc', n, 0, n * 10, 0, CASE n WHEN {ROWS - 1} THEN {OPEN} ELSE n * 10 + 10 END,
    n * 10 * 1e-19::numeric, '2024-01-01', '2024-01-01', list.id
FROM {{PayloadList}} AS list CROSS JOIN generate_series(0, {ROWS - 1}) AS n"""  # noqa: S608 -- numbers
# An account that may only read. A COPY of it takes a lock at the first row of each list.
READER = f"""
CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';
ALTER ROLE reader SET default_transaction_read_only = on;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
ALTER TABLE "PayloadIOV" ENABLE ROW LEVEL SECURITY;
CREATE POLICY held ON "PayloadIOV" USING (
    id % {ROWS} <> 0 OR current_query() NOT LIKE 'COPY%' OR pg_advisory_xact_lock_shared(id) IS NOT NULL
)
"""
# What holds a copy: in the source at an IOV; in the target at an IOV, before the rows of a tag, and at the end.
READING = "SELECT pg_advisory_xact_lock(%s)"
STORING = f"INSERT INTO \"PayloadIOV\" ({COLUMNS}) VALUES (%s, '', '', 0, 0, 0, 1, 0)"  # noqa: S608 -- a constant
CREATING = """INSERT INTO "GlobalTag" (id, name, author, description, status_id) VALUES (%s, 'other', '', '', 1)"""
FINISHING = 'SELECT FROM "Adoption" WHERE id = %s FOR NO KEY UPDATE'
WAITING = "SELECT pid FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'cdb-adopt'"
OTHERS = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
FULL = """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF new.id = TG_ARGV[0]::bigint THEN RAISE disk_full; END IF; RETURN new;
END $$; CREATE TRIGGER refuse BEFORE INSERT ON "PayloadIOV" FOR EACH ROW EXECUTE FUNCTION refuse(%s)"""


def execute(url, statement, *parameters):
    with contextlib.closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def first_of(tag):
    """The id of the first IOV of the last list of a tag."""
    return tag * LISTS * ROWS


class World:
    """A server with a database of nopayloaddb, `source`, whose URL is in `file`, and databases for copies."""

    def __init__(self, directory, server):
        self.directory, self.server, self.source = directory, server, server.url
        with contextlib.closing(psycopg2.connect(self.source)) as connection:
            connection.autocommit = True
            old = OldDatabase(connection).create()
            tags = [*(old.tag(f"tag_{number}") for number in range(1, TAGS + 1)), None]
            for number in range(TAGS * LISTS + 1):
                old.payload_list(f"Type{number % LISTS}", tags[number // LISTS], id=number + 1)
            old.execute(FILL)
            old.iov(None, (1, 0), (2, 0), id=1)
        execute(self.source, READER)
        access, loaded = server.data / "pg_hba.conf", "SELECT pg_conf_load_time()"
        access.write_text(f"local all reader scram-sha-256\n{access.read_text()}")
        [(before, _)] = execute(self.source, f"{loaded}, pg_reload_conf()")
        wait_until(lambda: execute(self.source, loaded)[0][0] > before)
        self.file = self.named("source", self.source)
        self.databases = 0
        assert self.service(self.target("template0")).manage("migrate").returncode == 0

    def named(self, name, url):
        """The argument for a new file with a URL, which gets the account and its password."""
        file = self.directory / f"{name}.url"
        file.write_text(url.replace("//cdb@", f"//reader:{PASSWORD}@"))
        return f"@{file}"

    def target(self, template="target_1"):
        """The URL of a new database, which is migrated and empty."""
        self.databases += 1
        execute(self.source, f"CREATE DATABASE target_{self.databases} TEMPLATE {template}")
        return self.source.replace("/cdb?", f"/target_{self.databases}?")

    def service(self, target):
        # Output is buffered, as it is where nothing else was asked for.
        settings = {"SCENARIO": "none", "CDB_WORKERS": "1", "CDB_LOCK_TIMEOUT_SECONDS": "60", "PYTHONUNBUFFERED": ""}
        return Service(self.directory / "service", DATABASE_URL=target, **settings)

    def adopt(self, target, *options, source=None):
        return begin(self.service(target), "adopt", source or self.file, *options)


def ended(process, code=0):
    """What a process has printed, which is nothing if a signal ended it, and one line beside the log if it failed."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == code, (out, err)
    assert PASSWORD not in out + err
    assert code == 0 or len([line for line in err.splitlines() if not line.startswith("{")]) == (code == 1), err
    return out + err


@pytest.fixture(scope="module")
def world(new_directory):
    directory = new_directory()
    directory.chmod(0o711)
    server = EmbeddedPostgres(directory / "postgres", FAST | {"shared_buffers": "128MB", "autovacuum": "off"})
    server.acquire()
    yield World(directory, server)
    server.release()


def hold(url, statement, parameter):
    """A context manager: inside the block the transaction of a connection, which is returned, holds a copy."""
    holder = psycopg2.connect(url)
    holder.cursor().execute(statement, (parameter,))
    return contextlib.closing(holder)


def wait_for(process, holder):
    """Wait until a copy is held, and return the process of the server that waits."""
    cursor = holder.cursor()
    wait_until(lambda: cursor.execute(WAITING) or cursor.rowcount or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return cursor.fetchone()[0]


def contents(url, tables=COPIED):
    """All rows, without the times of this test."""
    found = [execute(url, f'SELECT * FROM "{table}" ORDER BY 1') for table in tables]  # noqa: S608 -- constants
    return [[[v for v in row if not isinstance(v, datetime) or v.year < 2026] for row in rows] for rows in found]


def check_whole(world, target, count):
    """Only the first `count` tags are visible, with all of their rows."""
    query = f'SELECT payload_list_id, {COLUMNS} FROM "PayloadIOV" WHERE payload_list_id <= %s ORDER BY id'  # noqa: S608
    assert execute(target, query, OPEN) == execute(world.source, query, count * LISTS)
    tags = execute(target, 'SELECT id, payload_iov_count FROM "GlobalTag" ORDER BY id')
    assert tags == [(tag, LISTS * ROWS) for tag in range(1, count + 1)]


def test_a_copy_that_is_broken_again_and_again_shows_whole_tags_and_goes_on(world):
    source, target, other = world.source, world.target(), world.target()
    # Tests cannot fill a disk everywhere.
    execute(target, FULL, first_of(2))
    assert "CommandError: The database has no disk space left" in ended(world.adopt(target, *COPY), 1)
    check_whole(world, target, 1)
    execute(target, "DROP FUNCTION refuse CASCADE")
    # The tags that are whole then, what holds the copy, the signal that ends it, or its session in the source, and its exit code.
    for tags, url, statement, number, code in (
        (2, target, STORING, signal.SIGTERM, 143),
        (3, source, READING, signal.SIGINT, 130),
        (4, target, STORING, signal.SIGKILL, -signal.SIGKILL),
        (5, source, READING, signal.SIGTERM, 1),
        (6, source, READING, signal.SIGTERM, 143),
    ):
        with hold(url, statement, first_of(tags + 1)) as holder:
            process = world.adopt(target, *COPY)
            waiting = wait_for(process, holder)
            os.kill(waiting if code == 1 else process.pid, number)
            ended(process, code)
        wait_until(lambda: not execute(target, OTHERS))
        check_whole(world, target, tags)
    with hold(target, STORING, first_of(8)) as first:
        process = world.adopt(target, *COPY)
        wait_for(process, first)
        with hold(target, FINISHING, 1) as holder:
            first.close()
            wait_for(process, holder)
            process.kill()
            ended(process, -signal.SIGKILL)
    wait_until(lambda: not execute(target, OTHERS))
    check_whole(world, target, TAGS)
    assert "Copied 0 global tags" in ended(world.adopt(target, *COPY))
    assert f"Copied {TAGS} global tags" in ended(world.adopt(other, *COPY))
    assert contents(target) == contents(other)
    assert EQUAL in ended(world.adopt(target, "--verify"))


def test_a_second_run_is_refused_the_password_is_not_shown_and_the_source_does_not_change(world):
    tables = (*COPIED, "GlobalTagStatus", "PayloadListIdSequence", "django_migrations")
    before, target = contents(world.source, tables), world.target()
    assert "All that a copy needs is decided." in ended(world.adopt(target, "--mode", "continuous"))
    with hold(target, STORING, first_of(2)) as holder:
        process = world.adopt(target, *COPY)
        wait_for(process, holder)
        for option in ("--copy", "--update"):
            said = ended(world.adopt(target, option, "--mode", "continuous"), 1)
            assert said == "CommandError: another adoption runs on this database\n"
        commands = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
        assert any(world.file in command for command in commands)
        assert not any(PASSWORD in command for command in commands)
    ended(process)
    assert "Nothing has changed." in ended(world.adopt(target, "--update"))
    assert EQUAL in ended(world.adopt(target, "--verify"))
    assert contents(world.source, tables) == before


def test_a_source_that_cannot_be_used_is_one_line_without_the_password(world):
    target, url = world.target(), world.source
    cases = {
        url.replace("cdb@", f"reader:{PASSWORD}@"): "the URL has a password",
        f"{url}&password={PASSWORD}": "the URL has a password",
        f"{url}&sslpassword={PASSWORD}": "the URL has a password",
        world.named("wrong", url.replace("cdb@", f"reader:{PASSWORD[1:]}@")): "password authentication failed",
        world.named("closed", f"postgresql://cdb@127.0.0.1:{free_port()}/cdb"): "Connection refused",
        world.named("bad", url.replace("?", "?nothing=1&")): "the URL is not valid",
    }
    for process, words in [(world.adopt(target, *COPY, source=source), words) for source, words in cases.items()]:
        said = ended(process, 1)
        assert words in said and PASSWORD[1:] not in said


def test_a_standby_is_adopted_though_it_cancels_reads(world):
    options, target = {"max_standby_streaming_delay": "0", "hot_standby_feedback": "off"}, world.target()
    with contextlib.ExitStack() as stack:
        standby = stack.enter_context(Standby(world.directory, world.directory / "standby", options).running())
        # Queries in another database are not cancelled.
        source, watched = world.named("standby", standby.url), standby.url.replace("/cdb?", "/postgres?")
        assert "standby, hot_standby_feedback off" in ended(world.adopt(target, "--mode", "continuous", source=source))
        points = [(standby.url, READING, first_of(2)), (target, CREATING, 4), (target, STORING, first_of(6))]
        holders = [stack.enter_context(hold(*point)) for point in points]
        process = world.adopt(target, *COPY, source=source)
        for holder in holders:
            wait_for(process, holder)
            sessions = execute(watched, SESSIONS)
            execute(world.source, "UPDATE django_migrations SET name = name")
            execute(world.source, "VACUUM django_migrations")
            # The standby cancels a statement, and ends a session that waits for its client.
            wait_until(lambda sessions=sessions: not {*sessions} & {*execute(watched, SESSIONS)})
            holder.close()
        said = ended(process)
        assert f"Copied {TAGS} global tags" in said and "which were repeated; hot_standby_feedback = on" in said
        assert EQUAL in ended(world.adopt(target, "--verify", source=source))
    assert "Nothing has changed." in ended(world.adopt(target, "--update"))


@pytest.fixture(scope="module")
def adopted(world):
    """A service with an adopted database."""
    target = world.target()
    ended(world.adopt(target, *COPY))
    with world.service(target).running() as service:
        yield service


def test_changes_of_the_source_arrive_while_a_client_looks_up(world, adopted):
    client, lines = CppClient(adopted.port), []
    client.insert_payload("tag_2", "Type0", "here", (0, 5), (0, 10))
    watching = world.adopt(adopted.environment["DATABASE_URL"], "--update", "--watch", "1s")
    try:
        threading.Thread(target=lambda: lines.extend(watching.stdout), daemon=True).start()
        wait_until(lambda: "Left alone: tag_2: it was changed here since its last adoption\n" in lines)
        # Both databases end the sessions.
        for session in execute(world.source, SESSIONS):
            execute(world.source, "SELECT pg_terminate_backend(%s)", *session)
        change = "UPDATE \"PayloadIOV\" SET payload_url = 'new' WHERE id IN (%s, %s)"
        execute(world.source, change, first_of(1), first_of(2))
        wait_until(lambda: client.payloads("tag_1", 0, 5)["Type1"][0] == "new")
        wait_until(lambda: "Changed: tag_1\n" in lines)
    finally:
        watching.terminate()
    assert watching.wait(60) == 143
    assert all(line.startswith("{") or line.endswith("; it is tried again in 1 s\n") for line in watching.stderr)
    change = client.get("global-tags/tag_1/changes?order=desc")["results"][0]
    assert (change["action"], change["actor"]) == ("adopt", "adopt")
    assert client.payloads("tag_2", 0, 5) == {"Type0": ("here", 0, 5), "Type1": ("file_0", 0, 0)}
