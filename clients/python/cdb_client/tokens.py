"""Tokens: where the client finds one, and the tokens that `cdb login` stores."""

import json
import os
from pathlib import Path

from cdb_client import config
from cdb_client.errors import InputError


def find_token(settings: config.Config) -> str | None:
    """The token for the server, or None. Files are read each time, because other programs replace expired tokens in them.

    The order: the token or file of the configuration (CDB_TOKEN, CDB_TOKEN_FILE, token_file), the one that `cdb login` stored,
    then WLCG Bearer Token Discovery: BEARER_TOKEN, BEARER_TOKEN_FILE, $XDG_RUNTIME_DIR/bt_u<uid>, /tmp/bt_u<uid>. Raises
    `InputError` if a file that was named cannot be read.
    """
    if settings.token:
        return settings.token.strip()
    if settings.token_file:
        return _read(settings.token_file)
    if stored := stored_tokens().get(settings.server):
        return stored
    if token := os.environ.get("BEARER_TOKEN", "").strip():
        return token
    if file := os.environ.get("BEARER_TOKEN_FILE"):
        return _read(Path(file))
    for folder in (os.environ.get("XDG_RUNTIME_DIR"), "/tmp"):  # noqa: S108 -- the place that WLCG's specification names
        if folder and (path := Path(folder) / f"bt_u{os.getuid()}").is_file() and path.stat().st_uid == os.getuid():
            return _read(path)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The token file {path} cannot be read: {error}") from None


def stored_tokens() -> dict[str, str]:
    """The tokens that `cdb login` has stored, by the address of the server."""
    try:
        return dict(json.loads((config.directory() / "tokens.json").read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def store_token(server: str, token: str) -> None:
    """Store a token for a server, in a file that only this user may read."""
    path = config.directory() / "tokens.json"
    tokens = stored_tokens() | {server: token}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(tokens, file)
    temporary.replace(path)
