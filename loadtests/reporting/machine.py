"""The facts about the environment of a measurement: machine, versions, commit and settings."""

import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import psutil

from cdb.embedded.data_directory import OPTIONS
from cdb.env import ROOT
from loadtests.database import Database
from loadtests.reporting.result import Table


def facts(database: Database | None, settings: dict[str, str], *, generator: str = "wrk") -> Table:
    """The table of names and values; `generator` is wrk or locust.

    Without a database the service is a remote deployment, and the table has no facts about it.
    """
    rows = [
        ("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ("commit", commit()),
        ("processor", _processor()),
        ("cores to be used", str(len(os.sched_getaffinity(0)))),
        ("memory", f"{psutil.virtual_memory().total / 2**30:.1f} GiB"),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("load average at the start", "{:.2f}, {:.2f}, {:.2f}".format(*os.getloadavg())),
        ("Python", platform.python_version()),
        *(_service(database) if database else ()),
        (generator, _wrk() if generator == "wrk" else version(generator)),
        *(_options(database) if database else ()),
        *settings.items(),
    ]
    return Table("Environment" if database else "Environment of the load generator", ("", ""), rows)


def _service(database: Database) -> list[tuple[str, str]]:
    packages = [(name, version(name)) for name in ("django", "djangorestframework", "gunicorn", "psycopg2-binary")]
    return [*packages, ("PostgreSQL", database.value("SHOW server_version"))]


def _options(database: Database) -> list[tuple[str, str]]:
    return [(f"PostgreSQL {name}", database.value(f"SHOW {name}")) for name in _shown()]


def _wrk() -> str:
    return _first_line("wrk", "--version").split(" [")[0].removeprefix("wrk ")


def _shown() -> list[str]:
    kept = [name for name in OPTIONS if name not in ("listen_addresses", "port", "unix_socket_permissions")]
    return [name for name in kept if "timezone" not in name] + ["fsync", "synchronous_commit", "work_mem"]


def _processor() -> str:
    names = [line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def commit() -> str:
    """The current commit, with a remark if there are uncommitted changes; "unknown" without git."""
    changed = _first_line("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    commit = _first_line("git", "-C", str(ROOT), "log", "-1", "--format=%h %s")
    return f"{commit}{', with uncommitted changes' if changed else ''}" or "unknown"


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    # wrk prints its version with its usage and exits with an error.
    return (done.stdout or done.stderr).split("\n", 1)[0].strip()
