"""System checks of `manage.py check --deploy`, in addition to those of Django."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register
from dotenv import dotenv_values

from cdb import env, security
from cdb_rest.access import issuers

# The values of sslmode that require encryption. The default, prefer, falls back to an unencrypted connection.
ENCRYPTED = {"require", "verify-ca", "verify-full"}
SECRETS = (
    "CDB_SECRET_KEY",
    "CDB_MAIL_URL",
    "DATABASE_URL",
    "DATABASE_REPLICA_URLS",
    "PGPASSWORD",
    env.SUPERUSER_PASSWORD,
)


@register(Tags.security, deploy=True)
def check_hosts(**_: Any) -> list[Warning]:
    """Warn if CDB_ALLOWED_HOSTS accepts every host name."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "List the host names that clients use; 127.0.0.1 is always accepted."
    return [Warning("CDB_ALLOWED_HOSTS contains *, so every host name is accepted.", hint=hint, id="cdb.W001")]


@register(Tags.security, deploy=True)
def check_files(**_: Any) -> list[Warning]:
    """Warn if other accounts have access to the file of the generated signing key, or to a `.env` file with secrets."""
    return [
        Warning(f"{file} has secrets, and other accounts can read it.", hint=f"chmod 600 {file}", id="cdb.W002")
        for file in (env.file(), security.key_file())
        if _has_secrets(file) and file.stat().st_mode & 0o077
    ]


@register(Tags.security, deploy=True)
def check_connections(**_: Any) -> list[Warning]:
    """Warn if connections to a database on another machine may be unencrypted."""
    hint = "Add sslmode=verify-full and sslrootcert=… to the URL, or at least sslmode=require."
    return [
        Warning(f"The connection to PostgreSQL at {_addresses(database)} may be unencrypted.", hint=hint, id="cdb.W003")
        for database in settings.DATABASES.values()
        if _is_elsewhere(_addresses(database)) and database["OPTIONS"].get("sslmode") not in ENCRYPTED
    ]


@register(Tags.security, deploy=True)
def check_writes(**_: Any) -> list[Warning]:
    """Warn if all clients may write."""
    if not settings.CDB_OPEN_WRITES:
        return []
    hint = "Unset CDB_OPEN_WRITES, and add access rules (manage.py grant)."
    return [Warning("CDB_OPEN_WRITES is on, so every client may write.", hint=hint, id="cdb.W004")]


@register(Tags.security, deploy=True)
def check_issuers(**_: Any) -> list[Warning]:
    """Warn if other accounts can change CDB_ISSUERS_FILE, or have access to a secret file that it names.

    Raises `ImproperlyConfigured` if CDB_ISSUERS_FILE is not valid, and `OSError` if it does not exist.
    """
    if not settings.CDB_ISSUERS_FILE:
        return []
    found = []
    file = Path(settings.CDB_ISSUERS_FILE)
    if file.stat().st_mode & 0o022:
        hint = f"chmod go-w {file}"
        found.append(Warning(f"Other accounts can change {file}.", hint=hint, id="cdb.W005"))
    for issuer in issuers.configured():
        for secret in (issuer.secret_file, issuer.client_secret_file):
            if secret is not None and secret.stat().st_mode & 0o077:
                found.append(Warning(f"Other accounts can read {secret}.", hint=f"chmod 600 {secret}", id="cdb.W006"))
    return found


def _has_secrets(file: Path) -> bool:
    if not file.is_file() or not os.access(file, os.R_OK):
        return False
    if file == security.key_file():
        return True
    values = dotenv_values(file)
    return any(values.get(name) for name in SECRETS)


def _addresses(database: dict[str, Any]) -> str:
    """The servers that libpq connects to: `hostaddr`, or `host` without it."""
    return str(database["OPTIONS"].get("hostaddr") or database["HOST"])


def _is_elsewhere(hosts: str) -> bool:
    """Whether one of libpq's hosts, separated by commas, is another machine.

    A directory of Unix sockets, `localhost`, 127.0.0.1 and ::1 are this machine.
    """
    return any(
        host and not host.startswith(("/", "@")) and host not in {"localhost", "127.0.0.1", "::1"}
        for host in hosts.split(",")
    )
