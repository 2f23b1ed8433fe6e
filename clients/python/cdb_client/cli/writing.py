"""Commands that write."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from cdb_client.cli import options
from cdb_client.cli.options import PATH, Session, cdb
from cdb_client.cli.output import progress, say
from cdb_client.errors import RefusedError


@cdb.command()
@options.tag
@click.argument("payload_type")
@click.argument("url")
@click.option("--since", metavar="MOMENT", required=True, help="First moment.")
@click.option("--until", metavar="END", required=True, help="A moment, MAJOR,end, next (start of a payload) or open.")
@click.option("--file", type=PATH, help="The payload file, for its size and checksum.")
@click.option("--checksum", default="", metavar="TEXT", help="Checksum of the file.")
@click.option("--size", type=click.IntRange(0), default=0, metavar="BYTES", help="Size of the file.")
@options.write
def insert(session: Session, tag: str, **more: Any) -> None:
    """Make a payload valid in an interval. It prints the payload IOVs that are added and changed.

    Examples:
      cdb insert prod PED ped/7.root --since 1234 --until open --file ped/7.root
      cdb insert prod PED ped/8.root --since 1300 --until 1310,end --dry-run
    """
    done = session.client.writes.insert(tag, **more)
    if refused := done["refused"]:
        raise RefusedError(f"{refused['detail']} ({session.client.config.server}, tag {tag})")
    session.print(_effects(done["rows"]), "payload_type effect url since until", done)
    revisions = "".join(f" Now {name}@{number}." for name, number in done["revisions"].items())
    say(done["detail"] + revisions)


def _effects(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """A row for each payload IOV that a write adds or changes, as it is afterwards."""
    for row in rows:
        effects = [("unchanged" if row["unchanged"] else "added", row["added"], row["added"])]
        for effect in ("trimmed", "moved", "split", "detached"):
            effects += [(effect, iov, part) for iov in row[effect] for part in iov.get("after") or [iov]]
        for effect, iov, part in effects:
            yield {"payload_type": row["payload_type"], "effect": effect, "url": iov["payload_url"], **part}


@cdb.command("import")
@options.tag
@click.argument("file", type=PATH)
@options.write
def import_rows(session: Session, tag: str, file: Path, **more: Any) -> None:
    """Insert the payload IOVs of FILE into TAG. FILE is as `cdb export` writes it. After an interruption, run it again.

    Example: cdb import test prod.csv --reason "copy of prod"
    """
    with progress("payload IOVs") as report:
        summary = session.client.writes.import_rows(tag, file, progress=report, **more)
    session.print_members(summary)


@cdb.command()
@click.argument("kind", type=click.Choice(["tag", "type"]))
@click.argument("name")
@options.write
def create(session: Session, kind: str, name: str, **more: Any) -> None:
    """Create an empty, unlocked global tag, or a payload type.

    Example: cdb create tag mine
    """
    writes = session.client.writes
    session.print_members((writes.create_tag if kind == "tag" else writes.create_type)(name, **more))


@cdb.command()
@click.argument("source")
@click.argument("target")
@options.write
def clone(session: Session, source: str, target: str, **more: Any) -> None:
    """Copy SOURCE, or a state of its past, to a new tag TARGET. TARGET is unlocked.

    Example: cdb clone prod@12 prod-repaired
    """
    name, _, state = source.partition("@")
    rev = session.tag(source).revision if state else None
    session.print_members(session.client.writes.clone(name, target, rev=rev, **more))


def _status_command(name: str, status: str, text: str) -> None:
    @cdb.command(name, help=f"{text}\n\nExample: cdb {name} prod")
    @options.tag
    @options.write
    def change(session: Session, tag: str, **more: Any) -> None:
        # It cannot be taken back.
        if status == "frozen" and sys.stdin.isatty() and not more["dry_run"]:
            click.confirm(f"Freeze {tag} for ever?", abort=True, err=True)
        session.print_members(session.client.writes.set_status(tag, status, **more))


_status_command("lock", "locked", "Lock TAG: it may only be extended where nothing is defined yet.")
_status_command("freeze", "frozen", "Freeze TAG: it never changes again, and cannot be unlocked.")
_status_command("unlock", "unlocked", "Unlock TAG: it may change in any way.")
