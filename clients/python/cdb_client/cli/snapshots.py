"""Commands for snapshots."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cdb_client import snapshot as files
from cdb_client.cli import options
from cdb_client.cli.options import PATH, Session, cdb
from cdb_client.cli.output import progress, say
from cdb_client.errors import InputError
from cdb_client.snapshot_server import make_server


@cdb.group()
def snapshot() -> None:
    """Create, check and serve snapshots: tags in one file."""


@snapshot.command()
@click.option(
    "--tag", "tags", multiple=True, required=True, metavar="TAG", help="Also TAG@REVISION or TAG@TIME; repeatable."
)
@options.types
@options.window
@click.option("--restart", is_flag=True, help="Discard what an interrupted creation has left.")
@click.argument("file", type=PATH)
def create(session: Session, tags: Sequence[str], types: tuple[str, ...], file: Path, **more: Any) -> None:
    """Write tags, each at one revision, to FILE. After an interruption, run it again to continue.

    Examples:
      cdb snapshot create --tag prod prod.cdb
      cdb snapshot create --tag prod@12 --since 1000 --until 2000 prod.cdb
    """
    found = [session.tag(text) for text in ",".join(tags).split(",")]
    revs = {tag.names[0]: tag.revision if tag.states[0] else None for tag in found}
    if len(revs) < len(found):
        raise InputError("A snapshot has each tag at one revision only.")
    with progress("payload lists") as report:
        done = files.create(session.client.transport, file, revs, types=types or None, progress=report, **more)
    session.print_members(done)


@snapshot.command()
@click.argument("file", type=PATH)
def info(session: Session, file: Path) -> None:
    """Print the tags, revisions and window of FILE.

    Example: cdb snapshot info prod.cdb
    """
    session.print_members(files.info(file))


@snapshot.command()
@click.argument("file", type=PATH)
def verify(session: Session, file: Path) -> None:
    """Check that FILE is complete and undamaged. If it is not, the exit code is 6.

    Example: cdb snapshot verify prod.cdb
    """
    session.print_members(files.verify(file))


@snapshot.command()
@click.argument("file", type=PATH)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 is any free port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0 is all.")
def serve(session: Session, file: Path, port: int, host: str) -> None:
    """Serve FILE over HTTP, with the read API of nopayloaddb. End it with Ctrl-C.

    Example: cdb snapshot serve prod.cdb --port 8080
    """
    with make_server(file, port, host) as server:
        say(f"Serving {file} at http://{host}:{server.server_address[1]}; Ctrl-C ends it.")
        server.serve_forever()
