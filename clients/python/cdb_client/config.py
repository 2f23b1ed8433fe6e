"""Configuration: arguments, then environment variables, then the file `config.toml`."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import platformdirs

from cdb_client.errors import InputError

# The server of `make run` on this machine.
DEFAULT_SERVER = "http://127.0.0.1:8000"
# The members of the file that are numbers, and those of a server for `cdb login`.
NUMBERS = ("cache_size", "retry_for", "max_age")
LOGIN_MEMBERS = ("issuer", "client_id", "scope", "audience")


@dataclass(frozen=True)
class Config:
    """What a client needs to know.

    `server` is the address without a trailing slash. `payload_base` replaces the service's CDB_PAYLOAD_BASE_URL. `cache` is the
    directory of the cache, or None for no cache on disk; `cache_size` is the limit of its payload files in bytes. Requests are
    repeated for `retry_for` seconds. What is known about a tag is used without asking the service again for `max_age` seconds;
    None: as long as the process runs. `login` has the members for `cdb login`: the address of the identity provider as `issuer`,
    the `client_id` that is registered there, and, where it needs them, `scope` and `audience` of the token.
    """

    server: str
    token: str | None = None
    token_file: Path | None = None
    payload_base: str | None = None
    cache: Path | None = None
    cache_size: float = 10 * 10**9
    retry_for: float = 300.0
    max_age: float | None = None
    login: Mapping[str, str] = field(default_factory=dict)


def directory() -> Path:
    """The directory of `config.toml` and of the tokens of `cdb login`: CDB_CONFIG_DIR, or that of the operating system."""
    return Path(os.environ.get("CDB_CONFIG_DIR") or platformdirs.user_config_dir("cdb", appauthor=False))


def read_config(server: str | None = None, **given: Any) -> Config:
    """The configuration. `server` is an address or a name of the file; `given` are members of `Config` that override it.

    A member that is None is not given. Raises `InputError` if a value is invalid.
    """
    environment, file = os.environ, _read_file()
    servers: Mapping[str, Any] = file.get("servers", {})
    asked = server or environment.get("CDB_SERVER") or file.get("default") or DEFAULT_SERVER
    entry: Mapping[str, Any] = servers.get(asked, {})
    url = str(entry.get("url", asked)).rstrip("/")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in url
    except ValueError:
        is_address = False
    if not is_address:
        known = f"the servers of {directory() / 'config.toml'} ({', '.join(servers) or 'none'})"
        raise InputError(
            f"The server {url!r} is neither an address such as https://cdb.example.org nor one of {known}."
        )
    token_file = environment.get("CDB_TOKEN_FILE") or entry.get("token_file")
    values: dict[str, Any] = {
        "token": environment.get("CDB_TOKEN"),
        "token_file": Path(token_file).expanduser() if token_file else None,
        "payload_base": environment.get("CDB_PAYLOAD_BASE_URL") or entry.get("payload_base"),
        "cache": Path(environment.get("CDB_CACHE_DIR") or platformdirs.user_cache_dir("cdb", appauthor=False)),
        "login": {name: entry[name] for name in LOGIN_MEMBERS if name in entry},
    }
    values |= {name: file[name] for name in NUMBERS if name in file}
    return Config(url, **values | {name: value for name, value in given.items() if value is not None})


def _read_file() -> Mapping[str, Any]:
    path = directory() / "config.toml"
    try:
        found = tomllib.loads(path.read_text())
        entries = found.get("servers", {})
        if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
            raise ValueError("a server is a table, [servers.NAME], with the member url")
        return found | {name: float(found[name]) for name in NUMBERS if name in found}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
