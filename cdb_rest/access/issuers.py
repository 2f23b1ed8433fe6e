"""The issuers of tokens (JWT) that this service trusts, from the TOML file `CDB_ISSUERS_FILE`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from cdb_rest.rules.access import OWN_PREFIXES
from cdb_rest.rules.errors import InvalidInputError

ASYMMETRIC = ("RS256", "ES256", "EdDSA")
SYMMETRIC = "HS256"
FIELDS = (
    "issuer",
    "audience",
    "algorithms",
    "keys_url",
    "keys_file",
    "secret_file",
    "subject",
    "leeway_seconds",
    "client_id",
    "client_secret_file",
    "scope",
)
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
# The names of persons begin with the name of the issuer and a colon.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
# A shorter secret could be guessed from one token. Source: RFC 7518, section 3.2.
MIN_SECRET_BYTES = 32
MAX_LEEWAY_SECONDS = 300


@dataclass(frozen=True)
class Issuer:
    """An issuer, and how its tokens are verified.

    - `name`: its name in this service, for rules and the change log; none of `OWN_PREFIXES`.
    - `issuer`: the claim `iss`; empty only for HS256, if the tokens have no such claim, as those of nopayloaddb.
    - `audience`: accepted values of the claim `aud`; empty only for HS256: the claim is then not checked.
    - `algorithms`: those with which its tokens may be signed.
    - `keys_url`, `keys_file`: where its public keys (JWKS) are. If both are given, the file is used. With neither,
      discovery finds the keys.
    - `secret_file`, `secret`: the file from which the secret for HS256 was read, and the secret.
    - `subject`: the claim that names the person or program.
    - `leeway_seconds`: accepted difference of clocks.
    - `client_id`, `client_secret_file`, `client_secret`: the registration of this service at the issuer, for the login
      of persons in a browser. An empty `client_id` means that persons do not log in there.
    - `scope`: the scope that this service requests for such a login.
    """

    name: str
    issuer: str
    audience: tuple[str, ...]
    algorithms: tuple[str, ...]
    keys_url: str = ""
    keys_file: Path | None = None
    secret_file: Path | None = None
    secret: str = ""
    subject: str = "sub"
    leeway_seconds: int = 60
    client_id: str = ""
    client_secret_file: Path | None = None
    client_secret: str = ""
    scope: str = "openid profile email"


@lru_cache(maxsize=1)
def configured() -> tuple[Issuer, ...]:
    """The configured issuers; empty if `CDB_ISSUERS_FILE` is not set. Each process reads the file only once.

    Raises `ImproperlyConfigured`, with a message of one line, if the file is not valid.
    """
    return load(settings.CDB_ISSUERS_FILE) if settings.CDB_ISSUERS_FILE else ()


def check_name(name: str) -> None:
    """Raise `InvalidInputError` if no issuer with this name is configured. Raises the errors of `configured`."""
    names = [issuer.name for issuer in configured()]
    if name not in names:
        problem = f"issuer must be one in CDB_ISSUERS_FILE: {', '.join(names) or 'there is none'} (got {name})"
        raise InvalidInputError(problem, {"issuer": [problem]})


def for_login() -> Issuer | None:
    """The issuer where persons log in; None if there is none. Raises the errors of `configured`."""
    return next((issuer for issuer in configured() if issuer.client_id), None)


def login_issuer(_request: HttpRequest) -> dict[str, str]:
    """A context processor: the name of the issuer where persons log in, as `login_issuer`; empty if there is none."""
    issuer = for_login()
    return {"login_issuer": issuer.name if issuer else ""}


def load(file: str) -> tuple[Issuer, ...]:
    """The issuers in a file, with their secrets, which are read from other files.

    Paths in the file are relative to its directory. Raises `ImproperlyConfigured`.
    """
    # Imported here, because it takes 9 ms, and most commands need no issuers.
    import tomllib

    path = Path(file)
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ImproperlyConfigured(f"CDB_ISSUERS_FILE must be a TOML file (got {file}: {error})") from error
    issuers = tuple(_read(name, values, path.parent) for name, values in content.items())
    names = [issuer.issuer for issuer in issuers]
    if len(set(names)) < len(names):
        raise ImproperlyConfigured(f"{file}: each issuer must have a table of its own (got {', '.join(names)})")
    clients = [issuer.name for issuer in issuers if issuer.client_id]
    if len(clients) > 1:
        raise ImproperlyConfigured(f"{file}: only one issuer can have a client_id (got {', '.join(clients)})")
    return issuers


def is_secure(url: str) -> bool:
    """Whether a response from this URL cannot be replaced on its way: the URL is HTTPS, or HTTP on this machine.

    A malformed URL is not secure.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS)


def _read(name: str, values: Any, directory: Path) -> Issuer:
    _check_fields(name, values)
    algorithms = _read_algorithms(name, values)
    symmetric = SYMMETRIC in algorithms
    if symmetric != ("secret_file" in values):
        raise _invalid(name, "secret_file", f"is required with {SYMMETRIC}, and only with it")
    issuer, audience = _text(name, values, "issuer"), _texts(name, values, "audience")
    if not symmetric and not (issuer and audience and algorithms):
        raise _invalid(name, "issuer, audience and algorithms", "are required")
    leeway = values.get("leeway_seconds", Issuer.leeway_seconds)
    if not isinstance(leeway, int) or not 0 <= leeway <= MAX_LEEWAY_SECONDS:
        raise _invalid(name, "leeway_seconds", f"must be a number from 0 to {MAX_LEEWAY_SECONDS} (got {leeway})")
    keys_url, keys_file = _text(name, values, "keys_url"), _text(name, values, "keys_file")
    if not symmetric:
        _check_url(name, "keys_url", keys_url)
        if not (keys_url or keys_file):
            # The keys are then found through the issuer.
            _check_url(name, "issuer", issuer)
    secret_file = directory / _text(name, values, "secret_file") if symmetric else None
    client_id, client_secret_file = _text(name, values, "client_id"), _text(name, values, "client_secret_file")
    if bool(client_id) != bool(client_secret_file) or (client_id and symmetric):
        raise _invalid(name, "client_id and client_secret_file", "are required together, and not with HS256")
    return Issuer(
        name,
        issuer,
        audience,
        algorithms,
        keys_url,
        directory / keys_file if keys_file else None,
        secret_file,
        _secret(name, secret_file) if secret_file else "",
        _text(name, values, "subject") or Issuer.subject,
        leeway,
        client_id,
        directory / client_secret_file if client_id else None,
        _read_secret(name, "client_secret_file", directory / client_secret_file) if client_id else "",
        _text(name, values, "scope") or Issuer.scope,
    )


def _check_fields(name: str, values: Any) -> None:
    if not isinstance(values, Mapping):
        raise ImproperlyConfigured(f"CDB_ISSUERS_FILE must consist of tables, such as [experiment] (got {name})")
    if not NAME.fullmatch(name):
        raise ImproperlyConfigured(
            f"CDB_ISSUERS_FILE: a name must have only A-Z, a-z, 0-9, '.', '_' and '-' (got {name!r})"
        )
    if name.lower() in OWN_PREFIXES:
        names = ", ".join(OWN_PREFIXES)
        raise ImproperlyConfigured(f"CDB_ISSUERS_FILE: an issuer must not have one of the names {names} (got {name})")
    for field in values:
        if field not in FIELDS:
            raise _invalid(name, field, f"is unknown; there are {', '.join(FIELDS)}")


def _read_algorithms(name: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    algorithms = _texts(name, values, "algorithms")
    for algorithm in algorithms:
        if algorithm not in (*ASYMMETRIC, SYMMETRIC):
            raise _invalid(name, "algorithms", f"must be of {', '.join((*ASYMMETRIC, SYMMETRIC))} (got {algorithm})")
    if SYMMETRIC in algorithms and len(algorithms) > 1:
        raise _invalid(name, "algorithms", f"must be {SYMMETRIC} alone, or without it (got {', '.join(algorithms)})")
    return algorithms


def _check_url(name: str, field: str, url: str) -> None:
    if url and not is_secure(url):
        raise _invalid(name, field, f"must begin with https:// (got {url})")


def _read_secret(name: str, field: str, path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(name, field, f"can't be read ({error})") from error


def _secret(name: str, path: Path) -> str:
    secret = _read_secret(name, "secret_file", path)
    if len(secret.encode()) < MIN_SECRET_BYTES:
        raise _invalid(name, "secret_file", f"must have at least {MIN_SECRET_BYTES} bytes (got {len(secret.encode())})")
    if secret == settings.SECRET_KEY:
        raise _invalid(name, "secret_file", "must not have the value of CDB_SECRET_KEY, which signs sessions")
    return secret


def _text(name: str, values: Mapping[str, Any], field: str) -> str:
    value = values.get(field, "")
    if not isinstance(value, str):
        raise _invalid(name, field, f"must be a text (got {value})")
    return value


def _texts(name: str, values: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = values.get(field, [])
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _invalid(name, field, f"must be a text or a list of texts (got {value})")
    return tuple(value)


def _invalid(name: str, field: str, problem: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"CDB_ISSUERS_FILE, issuer {name}: {field} {problem}")
