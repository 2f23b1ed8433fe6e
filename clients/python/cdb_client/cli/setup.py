"""Commands about the user and this machine: login, whoami, config, cache."""

import sys
from dataclasses import asdict
from pathlib import Path

import click

from cdb_client import tokens
from cdb_client.cli.options import Group, Session, command, option
from cdb_client.config import directory
from cdb_client.errors import InputError


@command(
    option("--paste", is_flag=True, help="Paste a token, even if the server has an issuer in config.toml."),
    option("--forget", is_flag=True, help="Remove the stored token."),
)
def login(session: Session, *, paste: bool, forget: bool) -> None:
    """Check a token and store it for the server, in a file that only you can read.

    If config.toml has the identity provider of the server (issuer, client_id), you log in there with a browser. Otherwise
    paste a token, or pipe it to the command.

    Examples:
      cdb login
      cdb login < token.txt
    """
    from cdb_client import login as logins

    config = session.client().config
    if forget:
        tokens.store_token(config.server, None)
        session.output.say(f"The token for {config.server} is removed.")
        return
    if config.login and not paste:
        text = "Open {} in a browser, and type or check the code {} there."
        show = lambda address, code, whole: click.echo(text.format(whole or address, code), err=True)  # noqa: E731
        token = logins.device_flow(config, show)
    elif sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True, err=True)
    else:
        token = sys.stdin.readline()
    if not token.strip():
        raise InputError("The token is empty.")
    found = logins.store(config, token)
    session.output.say(f"Logged in at {config.server} as {found['name']}.")


@command()
def whoami(session: Session) -> None:
    """Print who you are for the service, and what you may write.

    Example: cdb whoami -o json
    """
    session.output.record(session.client().whoami())


@command()
def config(session: Session) -> None:
    """Print the configuration: the server, its token file, the cache and limits.

    Example: cdb config --server test
    """
    settings = session.client().config
    shown = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(settings).items()}
    shown["token"] = "(set)" if tokens.find_token(settings) else None
    session.output.record({"file": str(directory() / "config.toml")} | shown)


@click.group(cls=Group)
def cache() -> None:
    """Look at the cache on this machine, or clear it."""


def _contents(session: Session) -> tuple[Path, list[Path], list[Path]]:
    """The directory of the cache, its payload files, and the files with what it knows of tags."""
    folder = session.client().config.cache
    if folder is None:
        raise InputError("There is no cache with --no-cache.")
    files = [path for path in folder.glob("files/*") if path.suffix != ".lock"]
    return folder, files, list(folder.glob("*.sqlite3*"))


@command(group=cache)
def info(session: Session) -> None:
    """Print where the cache is, and what is in it.

    Example: cdb cache info
    """
    folder, files, lookups = _contents(session)
    sizes = {
        "files_bytes": sum(path.stat().st_size for path in files),
        "files_limit_bytes": session.client().config.cache_size,
        "lookups_bytes": sum(path.stat().st_size for path in lookups),
    }
    session.output.record({"directory": str(folder), "files": len(files), **sizes})


@command(group=cache)
def clear(session: Session) -> None:
    """Remove all payload files and lookups from the cache.

    Example: cdb cache clear
    """
    folder, files, lookups = _contents(session)
    for path in files + lookups:
        path.unlink(missing_ok=True)
    session.output.say(f"{len(files)} payload files and all lookups were removed from {folder}.")


COMMANDS = (login, whoami, config, cache)
