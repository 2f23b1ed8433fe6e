"""Commands that write: insert, import, create, clone, lock, freeze, unlock."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from cdb_client.cli.options import PATH, TAG, TAG_NAME, Session, argument, command, option
from cdb_client.errors import InputError, RefusedError

EFFECTS = ("payload_type", "effect", "url", "since", "until")
YES = option("-y", "--yes", is_flag=True, help="Do not ask.")
WRITE = (
    option("-m", "--reason", "comment", metavar="TEXT", help="Why, for the change log."),
    option("--dry-run", is_flag=True, help="Print what would change, and change nothing."),
)


@command(
    TAG_NAME,
    argument("payload_type"),
    argument("url"),
    option("--since", metavar="MOMENT", required=True, help="First moment."),
    option("--until", metavar="END", required=True, help="A moment, MAJOR,end, next (start of a payload) or open."),
    option("--file", type=PATH, help="The payload file, for its size and checksum."),
    option("--checksum", default="", metavar="TEXT", help="Checksum of the file."),
    option("--size", type=click.IntRange(0), default=0, metavar="BYTES", help="Size of the file."),
    option("--revision", metavar="TEXT", help="The producer's own revision of the payload."),
    *WRITE,
    YES,
)
def insert(session: Session, tag: str, *, dry_run: bool, yes: bool, **values: Any) -> None:
    """Make a payload valid in an interval. On a terminal, print what would change, and ask.

    Examples:
      cdb insert prod PED ped/7.root --since 1234 --until open --file ped/7.root
      cdb insert prod PED ped/8.root --since 1300 --until 1310,end --dry-run
    """
    is_asked = not yes and not dry_run and session.is_interactive
    done = session.client().writes.insert(_name(tag), **values, dry_run=dry_run or is_asked)
    if refused := done["refused"]:
        raise RefusedError(f"{refused['detail']} ({session.client().config.server}, tag {tag})")
    if session.output.is_json:
        session.output.record(done)
    else:
        session.output.rows(_effects(done["rows"]), EFFECTS)
    if is_asked:
        click.confirm(f"Change {tag}?", abort=True, err=True)
        done = session.client().writes.insert(_name(tag), **values)
    revisions = "".join(f" Now {name}@{number}." for name, number in done["revisions"].items())
    session.output.say(done["detail"] + revisions)


def _name(text: str) -> str:
    """The name of the one tag that a write changes."""
    if "@" in text or "," in text:
        raise InputError(f"A write changes the present state of one tag: give its name only (got {text!r}).")
    return text


def _effects(rows: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """A row for each payload IOV that a write adds or changes, as it is afterwards."""
    for row in rows:
        effects = [("unchanged" if row["unchanged"] else "added", row["added"], row["added"])]
        for effect in ("trimmed", "moved", "split", "detached"):
            for iov in row[effect]:
                after = iov.get("after") or iov
                effects += [(effect, iov, part) for part in (after if isinstance(after, list) else [after])]
        for effect, iov, part in effects:
            shown = {"payload_type": row["payload_type"], "effect": effect, "url": iov["payload_url"]}
            yield shown | {"since": part.get("since"), "until": part.get("until")}


@command(TAG_NAME, argument("file", type=PATH), *WRITE, name="import")
def import_rows(session: Session, tag: str, file: Path, **options: Any) -> None:
    """Insert the payload IOVs of FILE: CSV or JSON Lines, as `cdb export` writes them.

    If it is interrupted, run it again: rows that are valid already change nothing.

    Example: cdb import test prod.csv --reason "copy of prod"
    """
    with session.output.progress("payload IOVs") as progress:
        summary = session.client().writes.import_rows(_name(tag), file, progress=progress, **options)
    session.output.record(summary)


@command(argument("kind", type=click.Choice(["tag", "type"])), argument("name"), *WRITE)
def create(session: Session, kind: str, name: str, **options: Any) -> None:
    """Create an empty, unlocked global tag, or a payload type.

    Examples:
      cdb create tag mine
      cdb create type PED
    """
    make = session.client().writes.create_tag if kind == "tag" else session.client().writes.create_type
    session.output.record(make(name, **options))


@command(argument("source", type=TAG), argument("target"), *WRITE, has_past=True)
def clone(session: Session, source: str, target: str, **options: Any) -> None:
    """Copy SOURCE, or a state of its past, to the new unlocked tag TARGET.

    Examples:
      cdb clone prod prod-next
      cdb clone prod@12 prod-repaired
    """
    tag = session.tag(source)
    rev = tag.revision if any(tag.states) else None
    session.output.record(session.client().writes.clone(_name(", ".join(tag.names)), target, rev=rev, **options))


def _status_command(name: str, status: str, text: str) -> click.Command:
    def change(session: Session, tag: str, *, yes: bool = True, **options: Any) -> None:
        if not yes and not options["dry_run"] and session.is_interactive:
            click.confirm(f"Freeze {tag}? It can never be changed again.", abort=True, err=True)
        session.output.record(session.client().writes.set_status(_name(tag), status, **options))

    change.__doc__ = f"{text}\n\nExample: cdb {name} prod"
    return command(TAG_NAME, *WRITE, *([YES] if status == "frozen" else []), name=name)(change)


lock = _status_command("lock", "locked", "Lock TAG: from now on it may only be extended where nothing is defined yet.")
freeze = _status_command("freeze", "frozen", "Freeze TAG: it never changes again. On a terminal, ask.")
unlock = _status_command("unlock", "unlocked", "Unlock TAG: from now on it may change in any way.")

COMMANDS = (insert, import_rows, create, clone, lock, freeze, unlock)
