"""`make cluster`: all hosts of a cluster on this machine, until Ctrl-C or SIGTERM.

Three PostgreSQL under Patroni with three etcd, two hosts of the service (`make serve`), each with HAProxy, two levels of
Squid, and Varnish if it is installed. The configuration is that of real hosts, filled in with addresses of 127.0.0.1:
docs/cluster.md.
"""

import argparse
import contextlib
import http.client
import itertools
import os
import pwd
import resource
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from cdb import env
from cdb.embedded import binaries
from cdb.env import ROOT, ConfigurationError
from cdb.processes import directories, machine, templates
from cdb.processes.parent import ENDING, starting_child

SERVERS, HOSTS, ETCDS = ("pg1", "pg2", "pg3"), ("a", "b"), ("etcd1", "etcd2", "etcd3")
PACKAGES = {"patroni": "patroni", "etcd": "etcd-server", "haproxy": "haproxy", "squid": "squid"}
POSTGRESQL = "postgresql-15"
ADMIN_PATHS = "/usr/local/sbin:/usr/sbin:/sbin"
START_SECONDS, STOP_SECONDS = 180, 90


class Cluster:
    """The addresses and files of a cluster whose first port is `port`, in `directory`.

    `port` is that of the Squid that jobs use; the others follow within 50 ports.
    """

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.site, self.central = port, port + 1
        self.hosts = {name: port + 2 + place for place, name in enumerate(HOSTS)}
        self.primary = {name: port + 4 + place for place, name in enumerate(HOSTS)}
        self.postgresql = {name: port + 11 + place for place, name in enumerate(SERVERS)}
        self.patroni = {name: port + 21 + place for place, name in enumerate(SERVERS)}
        self.etcd = {name: port + 31 + place for place, name in enumerate(ETCDS)}
        self.etcd_peers = {name: port + 41 + place for place, name in enumerate(ETCDS)}
        self.varnish = port + 6 if _find("varnishd") else None

    @property
    def front(self) -> list[int]:
        """The ports at which clients reach the service."""
        return [*self.hosts.values(), self.site, *([self.varnish] if self.varnish else [])]

    @property
    def ports(self) -> list[int]:
        """All ports."""
        groups = (self.primary, self.postgresql, self.patroni, self.etcd, self.etcd_peers)
        return [*self.front, self.central, *(port for group in groups for port in group.values())]

    def database_url(self, host: str) -> str:
        """The DATABASE_URL of a host: its HAProxy, which leads to the primary."""
        password = self.secret("cdb-password")
        return f"postgresql://cdb:{password}@127.0.0.1:{self.primary[host]}/cdb"

    def secret(self, name: str) -> str:
        """A password of this cluster, created at its first use."""
        path = self.directory / name
        if not path.exists():
            templates.write(path, secrets.token_hex(24))
        return path.read_text()

    def write(self, *, is_asynchronous: bool) -> None:
        """Write the configuration of all programs. Raises `ConfigurationError` if one is not installed."""
        self.directory.mkdir(parents=True, exist_ok=True)
        binaries.allow_traversal(self.directory)
        sections = [self._etcd(), self._postgresql(is_asynchronous), self._services(), self._squids(), self._varnish()]
        values = {
            "USER": "root" if os.geteuid() == 0 else "",
            "ROOT": ROOT,
            "DIRECTORY": self.directory,
            "PROGRAMS": "\n".join(itertools.chain(*sections)),
        }
        text = templates.fill("cluster/supervisord.conf", values)
        templates.write(self.directory / "supervisord.conf", text.replace("user = \n", ""))

    def _etcd(self) -> Iterator[str]:
        members = ",".join(f"{name}=http://127.0.0.1:{port}" for name, port in self.etcd_peers.items())
        for name, port in self.etcd.items():
            client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{self.etcd_peers[name]}"
            command = [
                *(_path("etcd"), "--name", name, "--data-dir", self._private(name, "postgres")),
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", members, "--log-level", "warn"),
            ]
            yield self._program(name, 10, command, account="postgres")

    def _postgresql(self, is_asynchronous: bool) -> Iterator[str]:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        if not found:
            raise ConfigurationError(f"PostgreSQL is missing; on Debian or Ubuntu: apt-get install {POSTGRESQL}")
        create = self.directory / "create-database.sh"
        shutil.copy(ROOT / "deploy" / "cluster" / create.name, create)
        create.chmod(0o755)
        for name, port in self.postgresql.items():
            directory = self._private(name, "postgres")
            values = {
                "NAME": name,
                "ADDRESS": "127.0.0.1",
                "PORT": port,
                "REST_PORT": self.patroni[name],
                "ETCD": ",".join(f"127.0.0.1:{port}" for port in self.etcd.values()),
                "NETWORK": "127.0.0.1/32",
                "DATA": directory / "data",
                "DIRECTORY": directory,
                "BINARIES": found[-1].parent,
                "CREATE_DATABASE": create,
                "SUPERUSER_PASSWORD": self.secret("superuser-password"),
                "REPLICATION_PASSWORD": self.secret("replication-password"),
            }
            text = templates.fill("cluster/patroni.yml", values)
            if is_asynchronous:
                text = text.replace("synchronous_mode: true", "synchronous_mode: false")
            configuration = _write(directory / "patroni.yml", text, "postgres")
            environment = {"DATABASE_PASSWORD": self.secret("cdb-password")}
            yield self._program(
                name, 20, [_path("patroni"), configuration], account="postgres", environment=environment
            )

    def _services(self) -> Iterator[str]:
        checks = [
            f"server {name} 127.0.0.1:{port} check port {self.patroni[name]}" for name, port in self.postgresql.items()
        ]
        for name, port in self.hosts.items():
            directory = self.directory / f"host-{name}"
            directory.mkdir(exist_ok=True)
            values = {"LISTEN": f"127.0.0.1:{self.primary[name]}", "SERVERS": "\n    ".join(checks)}
            configuration = _write(directory / "haproxy.cfg", templates.fill("cluster/haproxy.cfg", values))
            yield self._program(f"haproxy-{name}", 30, [_path("haproxy"), "-db", "-f", configuration])
            url = self.database_url(name)
            # A migration needs the primary, which does not exist at once.
            wait = f"until {shlex.quote(binaries.path_of('pg_isready'))} -q -d {shlex.quote(url)}; do sleep 1; done"
            script = f"{wait}; exec {shlex.quote(sys.executable)} manage.py serve"
            environment = {
                "CDB_DATA_DIR": str(directory),
                "CDB_ENV_FILE": os.devnull,
                "CDB_SECRET_KEY": self.secret("secret-key") * 2,
                "CDB_OPEN_WRITES": os.environ.get("CDB_OPEN_WRITES", "true"),
                "CDB_REPLICATION_SLOTS": str(len(SERVERS) - 1),
                "DATABASE_URL": url,
                "PORT": str(port),
            }
            yield self._program(f"host-{name}", 40, ["sh", "-c", script], environment=environment)

    def _squids(self) -> Iterator[str]:
        options = "0 no-query no-digest no-netdb-exchange connect-timeout=2"
        hosts = [
            f"cache_peer 127.0.0.1 parent {port} {options} originserver round-robin name={name}"
            for name, port in self.hosts.items()
        ]
        central = [f"cache_peer 127.0.0.1 parent {self.central} {options} default name=central"]
        for name, port, peers in (("squid-central", self.central, hosts), ("squid-site", self.site, central)):
            directory = self._private(name, "proxy")
            values = {
                "LISTEN": f"127.0.0.1:{port}",
                "SITE": "127.0.0.1",
                "PEERS": "\n".join(peers),
                "COLLAPSED": os.environ.get("COLLAPSED", "off"),
                "DIRECTORY": directory,
                "NAME": name,
            }
            configuration = _write(directory / "squid.conf", templates.fill("cache/squid.conf", values), "proxy")
            command = [_path("squid"), "-N", "-n", name.replace("-", ""), "-f", configuration]
            yield self._program(name, 50, command, account="proxy")

    def _varnish(self) -> Iterator[str]:
        if not self.varnish:
            return
        backend = 'backend {} {{ .host = "127.0.0.1"; .port = "{}"; .probe = ready; .connect_timeout = 2s; }}'
        values = {
            "BACKENDS": "\n".join(backend.format(*host) for host in self.hosts.items()),
            "DIRECTOR": "\n    ".join(f"hosts.add_backend({name});" for name in self.hosts),
        }
        configuration = _write(self.directory / "varnish.vcl", templates.fill("cache/varnish.vcl", values))
        # Varnish reads it with an account of its own.
        configuration.chmod(0o644)
        listen = ("-a", f"127.0.0.1:{self.varnish}", "-s", "malloc,256m")
        command = [_path("varnishd"), "-F", "-n", self.directory / "varnish", "-f", configuration, *listen]
        yield self._program("varnish", 50, command)

    def _private(self, name: str, account: str) -> Path:
        """A directory that only the account can read, or that of this process if it is not root."""
        path = self.directory / name
        directories.make_private(path, pwd.getpwnam(account) if os.geteuid() == 0 else None)
        return path

    def _program(
        self,
        name: str,
        priority: int,
        command: Sequence[str | Path],
        *,
        account: str = "",
        environment: dict[str, str] | None = None,
    ) -> str:
        """The section of a program in supervisord's configuration."""
        setpriv = ["setpriv", "--pdeathsig", "TERM", "--"] if shutil.which("setpriv") else []
        lines = [
            f"[program:{name}]",
            f"command = {shlex.join(map(str, [*setpriv, *command]))}",
            f"priority = {priority}",
            "autorestart = true",
            "startretries = 20",
            "redirect_stderr = true",
            f"stdout_logfile = {self.directory / name}.log",
            "stopwaitsecs = 60",
        ]
        if account and os.geteuid() == 0:
            lines.append(f"user = {account}")
        if environment:
            pairs = ",".join(f'{key}="{value}"' for key, value in environment.items())
            lines.append(f"environment = {pairs}")
        return "\n".join(line.replace("%", "%%") for line in lines) + "\n"


def _find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path=ADMIN_PATHS)


def _path(program: str) -> str:
    if (found := _find(program)) is None:
        raise ConfigurationError(f"{program} is missing; on Debian or Ubuntu: apt-get install {PACKAGES[program]}")
    return found


def _write(path: Path, text: str, account: str = "") -> Path:
    """Write a file that only the account can read, or that of this process if it is not root."""
    templates.write(path, text)
    if account and os.geteuid() == 0:
        shutil.chown(path, account, pwd.getpwnam(account).pw_gid)
    return path


def status(port: int, path: str) -> int:
    """The status of a GET on a port of 127.0.0.1; 0 without a response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def primary(cluster: Cluster) -> str | None:
    """The name of the server that is the primary; None if there is none now."""
    return next((name for name, port in cluster.patroni.items() if status(port, "/primary") == 200), None)


def run(cluster: Cluster) -> NoReturn:
    """Start all programs, report when they are ready, and wait. Raises `ConfigurationError` if they end or do not start."""
    command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(cluster.directory / "supervisord.conf")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_URL", "PG"))}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # For Squid and HAProxy, which have two connections for each request.
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with starting_child() as prepare:
        process = subprocess.Popen(command, env=kept, start_new_session=True, preexec_fn=prepare)  # noqa: S603
    try:
        for what, is_ready in (
            ("A primary", lambda: primary(cluster) is not None),
            ("Both hosts", lambda: all(status(port, "/health/ready") == 200 for port in cluster.hosts.values())),
            ("The caches", lambda: all(status(port, "/health/ready") == 200 for port in cluster.front)),
        ):
            deadline = time.monotonic() + START_SECONDS
            while not is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise ConfigurationError(f"{what.lower()} did not start; see the log files in {cluster.directory}")
                time.sleep(0.2)
            _say(f"{what}: ready")
        for line in instructions(cluster):
            _say(line)
        process.wait()
        raise ConfigurationError(f"supervisord ended; see {cluster.directory}/supervisord.log")
    finally:
        _say("Stopping.")
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def instructions(cluster: Cluster) -> list[str]:
    """The lines to print when all is ready."""
    configuration = cluster.directory / SERVERS[0] / "patroni.yml"
    tag = "tiny" if env.read()["SCENARIO"] == "tiny" else "NAME"
    lookup = f"api/cdb_rest/payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0"
    hosts = ", ".join(f"http://127.0.0.1:{port}" for port in cluster.hosts.values())
    return [
        f"Jobs: http://127.0.0.1:{cluster.site} (Squid of a site), behind it http://127.0.0.1:{cluster.central} (central Squid)",
        *([f"Varnish: http://127.0.0.1:{cluster.varnish}"] if cluster.varnish else []),
        f"Hosts of the service: {hosts}",
        f"PostgreSQL, always the primary: 127.0.0.1:{cluster.primary['a']} (HAProxy)",
        f"Try:  curl -i 'http://127.0.0.1:{cluster.site}/{lookup}'",
        f"Servers:  patronictl -c {configuration} list        (switchover: the same with switchover)",
        f"Logs: {cluster.directory}",
        "Stop: Ctrl-C",
    ]


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Run a cluster for the options. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="make cluster", description=__doc__)
    text = "acknowledge writes before a standby has them: faster, but a failover may lose the last ones (only for a new cluster)"
    parser.add_argument("--asynchronous", action="store_true", help=text)
    options = parser.parse_args(arguments)
    for number in ENDING:
        signal.signal(number, _interrupt)
    values = env.read()
    cluster = Cluster((Path(values["CDB_DATA_DIR"]) / "cluster").resolve(), values["PORT"])
    try:
        for port in cluster.ports:
            machine.check_port_free(port, "make cluster")
        cluster.write(is_asynchronous=options.asynchronous)
        run(cluster)
    except ConfigurationError as error:
        sys.stderr.write(f"make cluster: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
