"""Commands that read."""

from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import click

from cdb_client.cli import options
from cdb_client.cli.options import PATH, Session, cdb
from cdb_client.cli.output import progress, say
from cdb_client.moments import Moment

IOV_COLUMNS = "payload_type url checksum size since until revision"


@cdb.command()
@click.argument("pattern", default="*")
def tags(session: Session, pattern: str) -> None:
    """List the global tags, or those whose names match PATTERN.

    Example: cdb tags 'prod*'
    """
    found = (tag for tag in session.client.tags() if fnmatchcase(tag["name"], pattern))
    session.print(found, "name status revision payload_lists_count payload_iov_count updated")


@cdb.command()
def types(session: Session) -> None:
    """List the payload types.

    Example: cdb types -o json
    """
    session.print(session.client.types(), "name description")


@cdb.command()
@options.tag
@options.moment
@options.types
@options.strict
def resolve(session: Session, tag: str, moment: Moment, types: tuple[str, ...], *, strict: bool) -> None:
    """Print the payload of each payload type of TAG at MOMENT. If one of --type has none, the exit code is 4.

    Examples:
      cdb resolve prod 1234,5 --type PED
      cdb resolve patch,prod@12 1234
    """
    found = session.tag(tag).resolve(moment, strict=strict, types=types or None)
    session.print((found[name].as_dict() for name in types or found), IOV_COLUMNS)


@cdb.command()
@options.tag
@options.moment
@click.option("--to", "directory", type=PATH, required=True, help="Directory for the files.")
@options.types
@options.strict
def get(session: Session, tag: str, moment: Moment, directory: Path, types: tuple[str, ...], *, strict: bool) -> None:
    """Download and verify the payload files of TAG at MOMENT. It prints their paths.

    Example: cdb get prod 1234 --to payloads --type PED
    """
    found = session.tag(tag).resolve(moment, strict=strict, types=types or None)
    wanted = [found[name] for name in types or found]
    with progress("payload files") as report:
        paths = session.client.files.download(wanted, directory, report)
    session.print([{"path": str(path)} for path in paths], "path")


@cdb.command()
@options.tag
@options.types
@options.window
def show(session: Session, tag: str, types: tuple[str, ...], **window: Any) -> None:
    """Print the status and limits of TAG, or its payloads. With --type, --since or --until, it lists the payloads.

    Examples:
      cdb show prod
      cdb show prod --type PED --since 1000 --until 2000
    """
    found = session.tag(tag)
    if types or any(window.values()):
        session.print((iov.as_dict() for iov in found.iovs(*types, **window)), IOV_COLUMNS)
    else:
        session.print_members(found.info())


@cdb.command()
@click.argument("a")
@click.argument("b")
@options.types
@options.window
def diff(session: Session, a: str, b: str, types: tuple[str, ...], **window: Any) -> None:
    """Print the intervals in which tags A and B have other payloads. Payloads that have ended do not count (--strict).

    Example: cdb diff prod@3 prod --type PED
    """
    found = session.tag(a).diff(session.tag(b), *types, **window)
    session.print(found, "payload_type since until a.payload_url b.payload_url")


@cdb.command()
@options.tag
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N changes.")
def log(session: Session, tag: str, last: int | None) -> None:
    """Print the changes of TAG, the newest first. `cdb diff prod@11 prod@12` shows what revision 12 changed.

    Example: cdb log prod --last 5
    """
    found = islice(session.tag(tag).changes(), last)
    session.print(found, "revision time actor action payload_iovs_before payload_iovs_after comment")


@cdb.command()
@options.tag
@options.types
@options.window
def coverage(session: Session, tag: str, types: tuple[str, ...], **window: Any) -> None:
    """Print which part of a window the payloads of TAG cover. 1.0 is all of it; the gaps are printed too.

    Example: cdb coverage prod --since 1000 --until 2000
    """
    found = session.tag(tag).coverage(*types, **window)
    session.print(found["payload_types"], "payload_type covered first_start last_end gaps", found)


@cdb.command()
@click.argument("url", required=False)
@click.option("--prefix", metavar="TEXT", help="Payloads whose URLs begin with this text, instead of URL.")
@click.option("--checksum", metavar="TEXT", help="Payloads with this checksum, instead of URL.")
def uses(session: Session, **payload: Any) -> None:
    """Print the tags and intervals that use a payload.

    Example: cdb uses ped/1234.root
    """
    rows = []
    for row in session.client.uses(**payload):
        window = {"since": [row["major_iov"], row["minor_iov"]], "until": [row["major_iov_end"], row["minor_iov_end"]]}
        rows.append(row | {"url": row["payload_url"]} | window)
    session.print(rows, "global_tag payload_type url checksum since until")


@cdb.command()
@options.tag
@options.moment
@options.types
def explain(session: Session, tag: str, moment: Moment, types: tuple[str, ...]) -> None:
    """Print why each payload type of TAG has its payload at MOMENT. It also prints the change that caused it.

    Example: cdb explain prod 1234 --type PED
    """
    found = session.tag(tag).explain(moment, types=types or None)
    session.print(found, "global_tag payload_type reason payload_iov.payload_url change.revision")


@cdb.command()
@options.tag
@click.argument("file", type=PATH)
@options.types
@options.window
def export(session: Session, tag: str, file: Path, **more: Any) -> None:
    """Write the payload IOVs of TAG to FILE. It is JSON Lines if its name ends with .jsonl, else CSV.

    Example: cdb export prod prod.csv
    """
    form = "jsonl" if file.suffix == ".jsonl" else "csv"
    count = session.tag(tag).export(file, format=form, **more)
    say(f"{count} payload IOVs written to {file}")
