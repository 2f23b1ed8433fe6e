"""The signing key, and the check of settings that contradict each other and would open the service."""

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from django.core.checks.security import base as django_checks

from cdb import env
from cdb.env import ConfigurationError

LOCAL_NAMES = {"localhost", "127.0.0.1", "[::1]"}


def check_contradictions(command: str = "") -> None:
    """Raise `ConfigurationError`, with all contradictions, if settings would open what another one closes.

    `command` is the command that starts the service, `run` or `serve`; empty if it is not known.
    """
    values = env.read()
    others = sorted(set(values["CDB_ALLOWED_HOSTS"]) - LOCAL_NAMES)
    opens_writes = command == "run" if values["CDB_OPEN_WRITES"] is None else values["CDB_OPEN_WRITES"]
    found = []
    if values["DEBUG"] and command == "serve":
        found.append("DEBUG must be off with make serve (got true); make run allows it")
    if values["DEBUG"] and others:
        found.append(
            "with DEBUG, which shows tracebacks, settings and statements to every client, CDB_ALLOWED_HOSTS must name only "
            f"{', '.join(sorted(LOCAL_NAMES))} (got {', '.join(others)}); remove these names, or turn DEBUG off"
        )
    if opens_writes and not values["CDB_ANONYMOUS_READS"]:
        found.append(
            "with CDB_ANONYMOUS_READS=false, which closes reads, CDB_OPEN_WRITES must be false (got true, the default of make "
            "run), because it permits everything to every client"
        )
    if found:
        raise ConfigurationError("; also: ".join(found))


def secret_key() -> str:
    """The configured signing key, or the one that is stored in CDB_DATA_DIR, which is generated if it does not exist.

    Raises `ConfigurationError` if the configured key is weak and DEBUG is off, or if no generated key can be stored.
    """
    values = env.read()
    configured = values["CDB_SECRET_KEY"]
    if configured and not values["DEBUG"] and _is_weak(configured):
        raise ConfigurationError(
            f"CDB_SECRET_KEY is too easy to guess: it must have at least {django_checks.SECRET_KEY_MIN_LENGTH} characters, "
            f"at least {django_checks.SECRET_KEY_MIN_UNIQUE_CHARACTERS} different ones, and not begin with "
            f"{django_checks.SECRET_KEY_INSECURE_PREFIX} (got {len(configured)} characters, {len(set(configured))} different); "
            'python3 -c "import secrets; print(secrets.token_urlsafe(50))" generates such a key'
        )
    return configured or _stored_key(key_file())


def key_file() -> Path:
    """The file of the generated key, which is used if none is configured."""
    data: Path = env.read()["CDB_DATA_DIR"]
    return data / "secret_key"


def trusted_origins(hosts: Iterable[str]) -> list[str]:
    """The HTTPS origins from which forms are accepted, for the allowed host names.

    A name that begins with a dot stands for that domain and all of its subdomains. The name `*` has no origin.
    """
    return [f"https://{f'*{host}' if host.startswith('.') else host}" for host in hosts if host != "*"]


def _is_weak(key: str) -> bool:
    """Whether a key is weak by the rules of Django's own check."""
    return (
        len(key) < django_checks.SECRET_KEY_MIN_LENGTH
        or len(set(key)) < django_checks.SECRET_KEY_MIN_UNIQUE_CHARACTERS
        or key.startswith(django_checks.SECRET_KEY_INSECURE_PREFIX)
    )


def _stored_key(file: Path) -> str:
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            # The link is atomic: the file is complete when it appears, and of several concurrent starts the
            # first one wins.
            with tempfile.NamedTemporaryFile("w", dir=file.parent) as unfinished, contextlib.suppress(FileExistsError):
                unfinished.write(secrets.token_urlsafe(50))
                unfinished.flush()
                os.link(unfinished.name, file)
        return file.read_text()
    except OSError as error:
        raise ConfigurationError(f"can't store a generated key ({error}); set CDB_SECRET_KEY") from error
