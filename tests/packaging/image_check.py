"""The images, built from Debian's packages, and compose.yaml, run with them: read-only, without root or capabilities.

`make image-check` runs it; it takes minutes, root, and programs that few machines have, so `make test` leaves it out.
"""

import json
import time

import pytest

from tests.e2e.service import JobClient
from tests.packaging.engine import Engine
from tests.packaging.test_compose import ENDING, ORDER, SECRETS

# A slim Debian is some 80 to 130 MB of it.
MOST_BYTES = 260 * 10**6


def wait_until(holds, seconds=90):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.fixture(scope="module")
def engine():
    made = Engine()
    try:
        made.build()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def stack(engine):
    """compose.yaml, up; each service was started when those that it depends on were well."""
    for service in ORDER:
        engine.compose("up", "--detach", "--no-build", "--no-deps", service)
        if service in ENDING:
            assert engine.run("podman", "wait", f"cdb_{service}_1").stdout.strip() == "0"
        else:
            wait_until(lambda name=service: engine.is_well(name))
    engine.execute("others", "python3", "manage.py", "seed_scenario", "tiny")
    return engine


@pytest.fixture
def client(stack):
    return JobClient(stack.port)


@pytest.mark.parametrize("name", ["cdb", "cdb-nginx"])
def test_an_image_is_small_and_says_how_it_is_used(engine, name):
    image = engine.inspect("image", f"localhost/{name}")
    base = engine.inspect("image", "localhost/cdb-base")
    print(f"{name}: {image['Size'] / 10**6:.0f} MB, {base['Size'] / 10**6:.0f} of them Debian's")  # noqa: T201
    assert image["Size"] < MOST_BYTES
    assert image["Config"]["User"] == "10001:10001"
    assert image["Labels"]["org.opencontainers.image.title"] == "cdb"
    assert image["Healthcheck"]["Test"][0] == "CMD"


@pytest.mark.parametrize("name", ["cdb", "cdb-nginx"])
def test_no_tools_are_left_in_an_image(engine, name):
    script = (
        "for tool in gcc cc g++ c++ make ld as pip pip3 curl wget git; do command -v $tool; done; "
        "find /var/lib/apt/lists /var/cache/apt /root /tmp -mindepth 1 ! -name '.bashrc' ! -name '.profile'; "
        "ls -d /build /srv/cdb/tests /srv/cdb/.git /srv/cdb/.env 2>/dev/null; "
        "find / -xdev -type f -perm /6000; find / -xdev -name '*pgserver*'; python3 -m pip --version 2>/dev/null; true"
    )
    found = engine.run("podman", "run", "--rm", "--network=none", "--user=0", f"localhost/{name}", "sh", "-c", script)
    assert found.stdout == ""


def test_without_a_database_a_line_says_so(engine):
    key = f"--env=CDB_SECRET_KEY={SECRETS['CDB_SECRET_KEY']}"
    command = ["podman", "run", "--rm", "--network=none", "--read-only", key, "localhost/cdb"]
    refused = engine.run(*command, "python3", "manage.py", "migrate", check=False)
    assert refused.returncode == 1
    assert (
        refused.stderr.strip().splitlines()[-1]
        == "cdb: the package with the embedded PostgreSQL is not installed; set DATABASE_URL"
    )


def test_a_lookup_is_answered(client):
    rows = client.get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")
    assert len(rows) == 10


@pytest.mark.parametrize("service", ["nginx", "lookups", "others", "compiler"])
def test_a_container_can_do_nothing_but_its_work(stack, service):
    assert stack.execute(service, "id", "-u").stdout.strip() == "10001"
    assert stack.execute(service, "touch", "/srv/cdb/x", check=False).returncode
    status = dict(
        line.split(":\t", 1)
        for line in stack.execute(service, "cat", "/proc/1/status").stdout.splitlines()
        if ":\t" in line
    )
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def test_a_write_is_on_the_standby_and_read_from_it(stack, client):
    assert client.call("POST", "pt", {"name": "Replicated"})[0] == 200

    def on_standby(sql):
        return stack.execute("standby", "psql", "-U", "postgres", "-d", "cdb", "-Atc", sql).stdout.strip()

    wait_until(lambda: on_standby("SELECT count(*) FROM \"PayloadType\" WHERE name = 'Replicated'") == "1")
    assert on_standby("SELECT pg_is_in_recovery()") == "t"
    client.get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")

    def is_read():
        logged = stack.run("podman", "logs", "cdb_lookups_1")
        return "replica_1 is in rotation" in logged.stdout + logged.stderr

    wait_until(is_read, 15)


@pytest.mark.parametrize("server", ["primary", "standby"])
def test_postgresql_has_the_settings_of_deploy(stack, server):
    command = ["psql", "-U", "postgres", "-Atc", "SELECT name, setting FROM pg_settings"]
    settings = dict(line.split("|", 1) for line in stack.execute(server, *command).stdout.splitlines() if "|" in line)
    assert settings["max_connections"] == "200" and settings["jit"] == "off"
    assert settings["shared_buffers"] == str(1024 * 1024 // 8)


def test_the_standby_has_its_place_in_the_log(stack):
    command = ["psql", "-U", "postgres", "-Atc", "SELECT slot_name, active FROM pg_replication_slots"]
    assert stack.execute("primary", *command).stdout.strip() == "standby|t"


def test_nginx_writes_its_log_to_the_output(stack, client):
    client.call("GET", "gt/by-the-log")

    def logged():
        lines = stack.run("podman", "logs", "cdb_nginx_1").stdout.splitlines()
        return [line for line in map(json.loads, lines) if line["uri"].endswith("by-the-log")]

    wait_until(logged, 15)


def test_all_end_when_they_are_told(stack):
    """The last test of the file."""
    for service in reversed([name for name in ORDER if name not in ENDING]):
        stack.run("podman", "stop", "--time=45", f"cdb_{service}_1")
        assert stack.inspect("container", f"cdb_{service}_1")["State"]["ExitCode"] == 0, service
