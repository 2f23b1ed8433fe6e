"""The facts about the environment of a measurement: machine, versions, commit and settings."""

import os
import platform
import re
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import psutil

from cdb.env import ROOT
from loadtests.database import Database
from loadtests.reporting.result import Table

PACKAGES = ("django", "djangorestframework", "granian", "gunicorn", "psycopg2-binary")
# The settings of PostgreSQL that affect its speed.
SETTINGS = ("max_connections", "shared_buffers", "work_mem", "max_wal_size", "jit", "autovacuum_naptime")
SETTINGS += ("archive_mode", "archive_timeout", "fsync", "synchronous_commit")


def facts(database: Database | None, settings: dict[str, str], *, generator: str = "wrk") -> Table:
    """The table of names and values; `generator` is wrk or locust.

    Without a database, as for a remote deployment, the table has no facts about the service.
    """
    cpuinfo = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.*)$", cpuinfo.read_text() if cpuinfo.exists() else "", re.MULTILINE)
    wrk = _first_line("wrk", "--version").split(" [")[0].removeprefix("wrk ")
    rows = [
        ("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ("commit", commit()),
        ("processor", models[0] if models else platform.machine()),
        ("available cores", str(len(os.sched_getaffinity(0)))),
        ("memory", f"{psutil.virtual_memory().total / 2**30:.1f} GiB"),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("load average at the start", "{:.2f}, {:.2f}, {:.2f}".format(*os.getloadavg())),
        ("Python", platform.python_version()),
        (generator, wrk if generator == "wrk" else version(generator)),
    ]
    if database:
        rows += [(name, version(name)) for name in PACKAGES] + [("PostgreSQL", database.value("SHOW server_version"))]
        rows += [(f"PostgreSQL {name}", database.value(f"SHOW {name}")) for name in SETTINGS]
    title = "Environment" if database else "Environment of the load generator"
    return Table(title, ("", ""), [*rows, *settings.items()])


def commit() -> str:
    """The current commit, with a remark if there are uncommitted changes; "unknown" without git or its repository."""
    changed = _first_line("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    commit = _first_line("git", "-C", str(ROOT), "log", "-1", "--format=%h %s")
    return f"{commit}{', with uncommitted changes' if changed else ''}" or "unknown"


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    # Whatever the exit code: wrk prints its version with its usage, and exits with an error.
    return done.stdout.split("\n", 1)[0].strip()
