"""Reading the configuration that comes from outside: the variables of `cdb/variables.py`.

This module is the only reader of ``os.environ``. A ``.env`` file in the project's root is read too; a variable that
is really set wins over it. An empty variable counts as not set, wherever it stands.
"""

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from environs import Env, EnvError

from cdb.variables import VARIABLES

# Django's own variable.
SUPERUSER_PASSWORD = "DJANGO_SUPERUSER_PASSWORD"  # noqa: S105
ROOT = Path(__file__).resolve().parent.parent
# The service manager's socket is for this process alone: gunicorn would report its own state there.
_NOTIFY_SOCKET = os.environ.pop("NOTIFY_SOCKET", "")
# As it was before a `.env` file was read into it.
_ENVIRONMENT = dict(os.environ)


class ConfigurationError(Exception):
    """A setting is wrong, or what it points at can't be used. The message is one line, meant for the operator."""


@cache
def read() -> dict[str, Any]:
    """Read every variable, typed and checked. Raises `ConfigurationError` that names the first wrong one."""
    env = Env()
    for name, value in _from_file().items():
        if value and not os.environ.get(name):
            os.environ[name] = value
    _forget_empty()
    values = {}
    for variable in VARIABLES:
        try:
            values[variable.name] = getattr(env, variable.kind)(
                variable.name, variable.default, validate=variable.check
            )
        except EnvError as error:
            reason = re.sub(r"[\[\]']", "", " ".join(str(error).split()))
            raise ConfigurationError(f"{reason} ({os.environ[variable.name]!r})") from error
    try:
        values["CDB_DATA_DIR"] = (ROOT / values["CDB_DATA_DIR"].expanduser()).resolve()
    except RuntimeError as error:
        raise ConfigurationError(f"CDB_DATA_DIR: {error}") from error
    if not values["DATABASE_URL"]:
        _forget_libpq()
    return values


def file() -> Path:
    """The file that further settings are read from, whether it exists or not."""
    return ROOT / (os.environ.get("CDB_ENV_FILE") or ".env")


def _from_file() -> dict[str, str | None]:
    if os.environ.get("CDB_ENV_FILE") and (not file().exists() or file().is_dir()):
        raise ConfigurationError(f"CDB_ENV_FILE: there is no file {file()}")
    try:
        return dotenv_values(file())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"can't read settings from {file()}: {error}") from error


def libpq_password() -> str:
    """The password that libpq takes where a URL has none."""
    return os.environ.get("PGPASSWORD", "")


def superuser_password() -> str:
    """The password that `createsuperuser --noinput` takes."""
    return os.environ.get(SUPERUSER_PASSWORD, "")


def notify_socket() -> str:
    """The address of the service manager's socket, empty without one."""
    return _NOTIFY_SOCKET


def for_children(**more: str) -> dict[str, str]:
    """The environment that we were started in, and `more`: a child that gets it reads the `.env` file of its own time."""
    return _ENVIRONMENT | more


def _forget_empty() -> None:
    for name in [*(variable.name for variable in VARIABLES), SUPERUSER_PASSWORD]:
        if not os.environ.get(name):
            os.environ.pop(name, None)


def _forget_libpq() -> None:
    """Drop libpq's own variables, such as PGPORT: they would divert connections meant for the embedded server."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
