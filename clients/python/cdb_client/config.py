"""Configuration: arguments, then environment variables, then the file `config.toml`."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import platformdirs

from cdb_client.errors import InputError

# The server of `make run` on this machine.
DEFAULT_SERVER = "http://127.0.0.1:8000"
# The members of the file, and of a server in it.
FILE_MEMBERS = {"default", "servers", "cache", "cache_size", "retry_for", "max_age"}
LOGIN_MEMBERS = ("issuer", "client_id", "scope", "audience")
SERVER_MEMBERS = {"url", "token_file", "payload_base", *LOGIN_MEMBERS}


@dataclass(frozen=True)
class Config:
    """What a client needs to know.

    `server` is the address without a trailing slash, and `name` its name in the file, or the address. `payload_base` replaces
    the service's CDB_PAYLOAD_BASE_URL. `cache` is the directory of the cache, or None for no cache on disk; `cache_size` is
    the limit of its payload files in bytes. Requests are repeated for `retry_for` seconds. What is known about a tag is used
    without asking the service again for `max_age` seconds; None: as long as the process runs. `issuer` is the address of the
    identity provider for `cdb login`, `client_id` the client that is registered there, and `scope` and `audience` what its
    tokens shall have.
    """

    server: str = DEFAULT_SERVER
    name: str = DEFAULT_SERVER
    token: str | None = None
    token_file: Path | None = None
    payload_base: str | None = None
    cache: Path | None = None
    cache_size: int = 10 * 10**9
    retry_for: float = 300.0
    max_age: float | None = None
    issuer: str | None = None
    client_id: str | None = None
    scope: str = "openid"
    audience: str | None = None


def directory() -> Path:
    """The directory of `config.toml` and of the tokens of `cdb login`: CDB_CONFIG_DIR, or that of the operating system."""
    return Path(os.environ.get("CDB_CONFIG_DIR") or platformdirs.user_config_dir("cdb", appauthor=False))


def default_cache() -> Path:
    """The directory of the cache: CDB_CACHE_DIR, or that of the operating system."""
    return Path(os.environ.get("CDB_CACHE_DIR") or platformdirs.user_cache_dir("cdb", appauthor=False))


def read_config(server: str | None = None, **given: Any) -> Config:
    """The configuration. `server` is an address or a name of the file; `given` are members of `Config` that override it.

    A member that is None is not given. Raises `InputError` if a value is invalid.
    """
    file = _read_file()
    servers: Mapping[str, Any] = file.get("servers", {})
    asked = server or os.environ.get("CDB_SERVER") or file.get("default") or DEFAULT_SERVER
    entry: Mapping[str, Any] = servers.get(asked, {})
    if "://" not in asked and not entry:
        known = (
            f"; the file has {', '.join(sorted(servers))}"
            if servers
            else f"; {directory() / 'config.toml'} names no server"
        )
        raise InputError(f"The server {asked!r} is no address such as https://conditions.example.org{known}.")
    url = str(entry.get("url", asked)).rstrip("/")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InputError(f"The address of a server begins with http:// or https:// (got {url!r}).")
    environment = os.environ
    token_file = environment.get("CDB_TOKEN_FILE") or entry.get("token_file")
    config = Config(
        server=url,
        name=asked,
        token=environment.get("CDB_TOKEN"),
        token_file=Path(token_file).expanduser() if token_file else None,
        payload_base=environment.get("CDB_PAYLOAD_BASE_URL") or entry.get("payload_base"),
        cache=Path(file["cache"]).expanduser()
        if "cache" in file and "CDB_CACHE_DIR" not in environment
        else default_cache(),
        **{name: file[name] for name in ("cache_size", "retry_for", "max_age") if name in file},
        **{name: entry[name] for name in LOGIN_MEMBERS if name in entry},
    )
    return replace(config, **{name: value for name, value in given.items() if value is not None})


def _read_file() -> Mapping[str, Any]:
    path = directory() / "config.toml"
    try:
        found = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    entries = found.get("servers", {})
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise InputError(f"{path}: servers must be tables such as [servers.NAME] with a member url.")
    unknown = [
        *(found.keys() - FILE_MEMBERS),
        *(name for entry in entries.values() for name in entry.keys() - SERVER_MEMBERS),
    ]
    if unknown:
        raise InputError(f"{path} has an unknown member {unknown[0]!r}.")
    for name in ("cache_size", "retry_for", "max_age"):
        if name in found and (
            isinstance(found[name], bool) or not isinstance(found[name], int | float) or found[name] < 0
        ):
            raise InputError(f"{path}: {name} must be a number that is not negative (got {found[name]!r}).")
    return found
