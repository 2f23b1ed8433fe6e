"""What keeps a service from being open by mistake: its signing key, and who may see what DEBUG shows."""

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

from django.core.checks.security import base as django_checks

from cdb import env
from cdb.env import ConfigurationError

LOCAL_NAMES = {"localhost", "127.0.0.1", "[::1]"}


def check_production() -> None:
    """Raise `ConfigurationError` where DEBUG is on."""
    if env.read()["DEBUG"]:
        raise ConfigurationError("DEBUG must be off with make serve (got true); make run allows it")


def secret_key() -> str:
    """The configured key, or the one that this data directory keeps.

    Raises `ConfigurationError` for a configured one that can be guessed, other than with DEBUG, and where none can be kept.
    """
    values = env.read()
    configured = values["CDB_SECRET_KEY"]
    if configured and not values["DEBUG"] and _is_weak(configured):
        raise ConfigurationError(
            f"CDB_SECRET_KEY is too easy to guess: it must have at least {django_checks.SECRET_KEY_MIN_LENGTH} random characters "
            f"(got {len(configured)} characters); "
            'python3 -c "import secrets; print(secrets.token_urlsafe(50))" makes such a key'
        )
    return configured or _kept_key(key_file())


def key_file() -> Path:
    """Where the key is kept that is used when none is configured."""
    data: Path = env.read()["CDB_DATA_DIR"]
    return data / "secret_key"


def check_debug() -> None:
    """Raise `ConfigurationError` where DEBUG is on and the service has a name by which other machines know it."""
    values = env.read()
    others = sorted(set(values["CDB_ALLOWED_HOSTS"]) - LOCAL_NAMES)
    if values["DEBUG"] and others:
        raise ConfigurationError(
            "with DEBUG, which shows tracebacks, settings and statements to every client, CDB_ALLOWED_HOSTS must name only "
            f"{', '.join(sorted(LOCAL_NAMES))} (got {', '.join(others)}); remove these names, or turn DEBUG off"
        )


def check_debug_listens_here(addresses: Iterable[object]) -> None:
    """Raise `ConfigurationError` where DEBUG is on and other machines may connect. `addresses` are gunicorn's: a pair of host
    and port, or the path of a Unix socket."""
    hosts = [address[0] for address in addresses if isinstance(address, tuple)]
    open_ones = [host for host in hosts if host != "localhost" and not _is_loopback(host)]
    if env.read()["DEBUG"] and open_ones:
        raise ConfigurationError(
            f"with DEBUG, gunicorn must listen on addresses of this machine only (got {', '.join(open_ones)})"
        )


def trusted_origins(hosts: Iterable[str]) -> list[str]:
    """Where forms may come from when the service is reached by HTTPS, by the host names that it answers to."""
    return [f"https://{f'*{host}' if host.startswith('.') else host}" for host in hosts if host != "*"]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_weak(key: str) -> bool:
    """By the rules of Django's own check."""
    return (
        len(key) < django_checks.SECRET_KEY_MIN_LENGTH
        or len(set(key)) < django_checks.SECRET_KEY_MIN_UNIQUE_CHARACTERS
        or key.startswith(django_checks.SECRET_KEY_INSECURE_PREFIX)
    )


def _kept_key(file: Path) -> str:
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            # Complete before it has its name, and the first of several that start together wins.
            with tempfile.NamedTemporaryFile("w", dir=file.parent) as unfinished, contextlib.suppress(FileExistsError):
                unfinished.write(secrets.token_urlsafe(50))
                unfinished.flush()
                os.link(unfinished.name, file)
        return file.read_text()
    except OSError as error:
        raise ConfigurationError(f"can't keep a generated key ({error}); set CDB_SECRET_KEY") from error
