"""supervisord, which runs the programs of `make serve`: its configuration, and its start in place of this process."""

import os
import re
import resource
import shlex
import shutil
import subprocess
import sys

from cdb import env
from cdb.embedded import binaries
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT, ConfigurationError
from cdb.processes import multiprocess_metrics, templates
from cdb.serving import layout, nginx
from cdb.serving.sizes import lookup_workers

CONFIGURATION = "supervisord.conf"
# Debian installs nginx in a directory that is not in the PATH of ordinary accounts.
MORE_PATHS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
# The limit on open files: a process has one for each connection of thousands of clients.
MOST_FILES = 65536


def nginx_program() -> str:
    """The path of nginx. Raises `ConfigurationError` if it is not installed."""
    found = shutil.which("nginx") or shutil.which("nginx", path=os.pathsep.join(MORE_PATHS))
    if found is None:
        raise ConfigurationError("make serve needs nginx; on Debian or Ubuntu: apt-get install nginx-light")
    return found


def write_configuration(server: EmbeddedPostgres | None) -> None:
    """Write supervisord.conf and nginx.conf; `server` is the embedded PostgreSQL, None with DATABASE_URL.

    Raises `ConfigurationError`, and keeps the old nginx.conf, if nginx rejects the new one or is not installed.
    """
    directory = layout.directory()
    values: dict[str, object] = {
        "USER": "root" if os.geteuid() == 0 else "",
        "ROOT": ROOT,
        "DIRECTORY": directory,
        "PREFIX": shlex.quote(f"{directory}/"),
        "SOCKETS": layout.sockets(),
        # Only Linux has it. Without it, programs outlive a supervisord that is killed.
        "SETPRIV": "setpriv --pdeathsig TERM --" if shutil.which("setpriv") else "",
        "PYTHON": sys.executable,
        "NGINX": nginx_program(),
        "WORKERS": lookup_workers(),
        "THREADS": env.read()["CDB_THREADS"],
        "POSTGRESQL": "",
    }
    if server:
        account = binaries.account()
        values |= {
            "COMMAND": shlex.join(server.command()),
            "ACCOUNT": account.pw_name if account else "",
            "LOG": server.log,
        }
        values["POSTGRESQL"] = templates.fill("supervisord-postgresql.conf", values).replace("TERM", "INT")
    # A line without a value, such as "user =", is left out. supervisord expands %.
    text = re.sub(r"^\w+ = *\n", "", templates.fill(CONFIGURATION, values), flags=re.MULTILINE).replace("%", "%%")
    templates.write(directory / CONFIGURATION, text)
    candidate = directory / "candidate.conf"
    templates.write(candidate, nginx.of_serve())
    command_line = [nginx_program(), "-t", "-q", "-p", f"{directory}/", "-c", candidate.name, "-e", "stderr"]
    tested = subprocess.run(command_line, check=False, capture_output=True, text=True, umask=0o077)  # noqa: S603
    if tested.returncode:
        raise ConfigurationError(f"nginx rejects its configuration: {' '.join(tested.stderr.split())}")
    candidate.replace(directory / nginx.CONFIGURATION)


def replace_process() -> None:
    """Replace this process by supervisord, which runs until SIGTERM or SIGINT."""
    for leftover in ("lookups.sock", "others.sock", "supervisor.sock"):
        (layout.sockets() / leftover).unlink(missing_ok=True)
    configuration = str(layout.directory() / CONFIGURATION)
    arguments = [sys.executable, "-m", "supervisor.supervisord", "--configuration", configuration]
    settings = {
        "CDB_LOG_FILE": env.read()["CDB_LOG_FILE"] or str(layout.directory() / "service.log"),
        "PROMETHEUS_MULTIPROC_DIR": str(multiprocess_metrics.recreate()),
    }
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    os.umask(0o077)
    os.execve(sys.executable, arguments, env.child_environment(**settings))  # noqa: S606
