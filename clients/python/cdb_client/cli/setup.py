"""Commands about the user and this machine."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import cast

import click

from cdb_client.cache import Cache
from cdb_client.cli.options import Session, cdb
from cdb_client.cli.output import say
from cdb_client.config import directory
from cdb_client.errors import InputError
from cdb_client.login import device_flow, store
from cdb_client.tokens import find_token


@cdb.command()
def login(session: Session) -> None:
    """Check a token and store it for the server.

    If config.toml has the identity provider of the server (issuer, client_id), you log in there with a browser; otherwise you
    paste a token. The token is stored in tokens.json beside config.toml, which only you can read; to log out, remove it.

    Examples:
      cdb login
      cdb login < token.txt
    """
    config = session.client.config
    if not sys.stdin.isatty():
        token = sys.stdin.readline()
    elif config.login:
        text = "Open {} in a browser, and type or check the code {} there."
        token = device_flow(config, lambda address, code, whole: say(text.format(whole or address, code)))
    else:
        token = click.prompt("Token", hide_input=True, err=True)
    if not token.strip():
        raise InputError("The token is empty.")
    found = store(config, token)
    say(f"Logged in at {config.server} as {found['name']}.")


@cdb.command()
def whoami(session: Session) -> None:
    """Print who you are for the service, and what you may write.

    Example: cdb whoami -o json
    """
    session.print_members(session.client.whoami())


@cdb.command()
def config(session: Session) -> None:
    """Print the configuration that is in use, and its file.

    Example: cdb config --server test
    """
    settings = session.client.config
    try:
        token = "(set)" if find_token(settings) else None
    except InputError as error:
        token = str(error)
    session.print_members({"file": directory() / "config.toml"} | asdict(settings) | {"token": token})


@cdb.command()
@click.argument("action", type=click.Choice(["info", "clear"]))
def cache(session: Session, action: str) -> None:
    """Print the size of the cache on this machine, or clear it. It has payload files and lookups.

    Example: cdb cache info
    """
    settings = session.client.config
    folder = cast(Path, settings.cache)
    files = [path for path in (*folder.glob("files/*"), *folder.glob("*.sqlite3*")) if path.suffix != ".lock"]
    if action == "clear":
        payloads = [path for path in files if path.parent != folder]
        for path in payloads:
            path.unlink(missing_ok=True)
        Cache(folder).clear()
        say(f"{len(payloads)} payload files and all lookups were removed from {folder}.")
    else:
        size = sum(path.stat().st_size for path in files)
        session.print_members({"directory": folder, "files": len(files), "bytes": size})
