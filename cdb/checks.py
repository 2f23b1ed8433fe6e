"""What `manage.py check --deploy` looks at besides Django's own rules: what an operator of this service may leave open."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register

from cdb import env, security

# libpq's modes in which nobody can read what passes; the default, prefer, does without if it is told to.
ENCRYPTED = {"require", "verify-ca", "verify-full"}
SECRETS = ("CDB_SECRET_KEY", "DATABASE_URL")


@register(Tags.security, deploy=True)
def check_hosts(**_: Any) -> list[Warning]:
    """The host names are a list, and not all there are."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "Name those by which clients know the service; its own machine may always ask."
    return [Warning("CDB_ALLOWED_HOSTS has *, so any name is taken.", hint=hint, id="cdb.W001")]


@register(Tags.security, deploy=True)
def check_files(**_: Any) -> list[Warning]:
    """Files with secrets in them are for their owner alone."""
    return [
        Warning(f"{file} has secrets, and other accounts can read it.", hint=f"chmod 600 {file}", id="cdb.W002")
        for file in (env.file(), security.key_file())
        if _has_secrets(file) and file.stat().st_mode & 0o077
    ]


@register(Tags.security, deploy=True)
def check_connections(**_: Any) -> list[Warning]:
    """Databases on other machines are reached by encrypted connections."""
    hint = "Add sslmode=verify-full and sslrootcert=… to the URL, or at least sslmode=require."
    return [
        Warning(f"The connection to PostgreSQL at {database['HOST']} need not be encrypted.", hint=hint, id="cdb.W003")
        for database in settings.DATABASES.values()
        if _is_elsewhere(database["HOST"]) and database["OPTIONS"].get("sslmode") not in ENCRYPTED
    ]


def _has_secrets(file: Path) -> bool:
    if not file.is_file() or not os.access(file, os.R_OK):
        return False
    if file == security.key_file():
        return True
    lines = file.read_text(errors="replace").splitlines()
    return any(line.partition("=")[2].strip() for line in lines if line.strip().startswith(SECRETS))


def _is_elsewhere(hosts: str) -> bool:
    """Whether one of libpq's hosts, separated by commas, is neither a directory of Unix sockets nor this machine."""
    return any(
        host and not host.startswith(("/", "@")) and host not in {"localhost", "127.0.0.1", "::1"}
        for host in hosts.split(",")
    )
