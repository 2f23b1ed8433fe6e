"""Commands for snapshots: create, info, verify, serve."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cdb_client.cli.options import PATH, TAG, TYPES, WINDOW, Group, Session, argument, command, option
from cdb_client.errors import InputError

FILE = argument("file", type=PATH)


@click.group(cls=Group)
def snapshot() -> None:
    """Create, check and serve snapshots: tags in one file, for reads without network."""


@command(
    option("--tag", "tags", type=TAG, multiple=True, required=True, help="A tag, or TAG@REVISION; repeatable."),
    TYPES,
    *WINDOW,
    option("--restart", is_flag=True, help="Discard what an interrupted creation has left."),
    FILE,
    has_past=True,
    group=snapshot,
)
def create(session: Session, tags: Sequence[str], types: tuple[str, ...], file: Path, **options: Any) -> None:
    """Write tags, each at one revision, to FILE. After an interruption, run it again to continue.

    Examples:
      cdb snapshot create --tag prod prod.cdb
      cdb snapshot create --tag prod@12 --since 1000 --until 2000 prod.cdb
    """
    from cdb_client import snapshot as snapshots

    found = [session.tag(text) for text in tags]
    revs = {tag.names[0]: tag.revision if tag.states[0] else None for tag in found}
    if len(revs) < len(found) or any(len(tag.names) > 1 for tag in found):
        raise InputError("A snapshot has several different tags if --tag is repeated.")
    transport = session.client().transport
    with session.output.progress("payload lists") as progress:
        done = snapshots.create(transport, file, revs, types=types or None, progress=progress, **options)
    session.output.record(done)


@command(FILE, group=snapshot)
def info(session: Session, file: Path) -> None:
    """Print what FILE contains: tags with their revisions, window, payload types and checksum.

    Example: cdb snapshot info prod.cdb
    """
    from cdb_client import snapshot as snapshots

    session.output.record(snapshots.info(file))


@command(FILE, group=snapshot)
def verify(session: Session, file: Path) -> None:
    """Check that FILE is complete and undamaged. If it is not, the exit code is 6.

    Example: cdb snapshot verify prod.cdb
    """
    from cdb_client import snapshot as snapshots

    session.output.record(snapshots.verify(file))


@command(
    FILE,
    option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Port; 0 is any free one."),
    option("--host", default="127.0.0.1", show_default=True, help="Address to listen at."),
    group=snapshot,
)
def serve(session: Session, file: Path, port: int, host: str) -> None:
    """Serve FILE over HTTP, with the read API of nopayloaddb. End it with Ctrl-C.

    Example: cdb snapshot serve prod.cdb --port 8080
    """
    from cdb_client import snapshot_server

    with snapshot_server.make_server(file, port, host) as server:
        session.output.say(f"Serving {file} at http://{host}:{server.server_address[1]}; Ctrl-C ends it.")
        server.serve_forever()


COMMANDS = (snapshot,)
