"""The service's configuration, read from environment variables and from a `.env` file in the project's root.

`cdb/variables.toml` declares the variables. This module is the only reader of ``os.environ``. An environment variable
takes precedence over the file. An empty variable counts as not set, in the environment and in the file.
"""

import difflib
import os
from functools import cache
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from cdb.variables import VARIABLES

# Django's createsuperuser command defines this variable.
SUPERUSER_PASSWORD = "DJANGO_SUPERUSER_PASSWORD"  # noqa: S105
ROOT = Path(__file__).resolve().parent.parent
# A copy from before the `.env` file is read into os.environ.
_ENVIRONMENT = dict(os.environ)


class ConfigurationError(Exception):
    """A setting is invalid, or something it refers to can't be used. The message is one line for the operator."""


@cache
def read() -> dict[str, Any]:
    """All variables by name, converted to their types and validated.

    CDB_DATA_DIR is made absolute, relative to the project's root. Later calls return the same dictionary, which callers
    must not change. The first call also changes `os.environ`: it adds the values of the `.env` file and removes empty
    variables of `VARIABLES` and, for the embedded server, libpq's own variables.

    Raises `ConfigurationError`, which names the first invalid variable, or the file if it can't be read.
    """
    for name, value in _read_file().items():
        if value and not os.environ.get(name):
            os.environ[name] = value
    for name in [*(variable.name for variable in VARIABLES), SUPERUSER_PASSWORD]:
        if not os.environ.get(name):
            os.environ.pop(name, None)
    values = {variable.name: variable.default for variable in VARIABLES}
    for variable in VARIABLES:
        if text := os.environ.get(variable.name):
            try:
                values[variable.name] = variable.read(text)
            except ValueError as error:
                raise ConfigurationError(f"{variable.name} {error} (got {text})") from error
    try:
        values["CDB_DATA_DIR"] = (ROOT / Path(values["CDB_DATA_DIR"]).expanduser()).resolve()
    except RuntimeError as error:
        raise ConfigurationError(f"CDB_DATA_DIR: {error}") from error
    if not values["DATABASE_URL"]:
        # Variables of libpq, such as PGPORT, would redirect connections to the embedded server.
        for name in [name for name in os.environ if name.startswith("PG")]:
            del os.environ[name]
    return values


def unknown() -> list[str]:
    """A line for each variable whose name begins with CDB_ and that is no setting, with the nearest name."""
    known = [variable.name for variable in VARIABLES]
    names = sorted(name for name in os.environ if name.startswith("CDB_") and name not in known)
    nearest = {name: difflib.get_close_matches(name, known, 1) for name in names}
    return [f"{name} is no setting{f'; did you mean {near[0]}?' if near else ''}" for name, near in nearest.items()]


def file() -> Path:
    """The path of the `.env` file, or of the file that CDB_ENV_FILE names; it need not exist."""
    return ROOT / (os.environ.get("CDB_ENV_FILE") or ".env")


def _read_file() -> dict[str, str | None]:
    if os.environ.get("CDB_ENV_FILE") and (not file().exists() or file().is_dir()):
        raise ConfigurationError(f"CDB_ENV_FILE: there is no file {file()}")
    try:
        return dotenv_values(file())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"can't read settings from {file()}: {error}") from error


def child_environment(**more: str) -> dict[str, str]:
    """The environment variables for a child process: those that this process was started with, and `more`.

    They do not include values from the `.env` file, so the child reads the current version of the file itself.
    """
    return _ENVIRONMENT | more
