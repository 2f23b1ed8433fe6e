"""Commands that read: tags, types, resolve, get, iovs, show, diff, log, coverage, uses, explain, export."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import click

from cdb_client.cli.options import MOMENT, PATH, TAG, TAG_NAME, TYPES, WINDOW, Session, argument, command, option
from cdb_client.moments import Moment

TAG_COLUMNS = ("name", "status", "revision", "payload_lists_count", "payload_iov_count", "author", "updated")
IOV_COLUMNS = ("payload_type", "url", "checksum", "size", "since", "until", "revision")
CHANGE_COLUMNS = ("revision", "time", "actor", "action", "payload_iovs_before", "payload_iovs_after", "comment")
REASON_COLUMNS = (
    *("global_tag", "payload_type", "reason", "payload_iov.payload_url"),
    *("change.revision", "change.time", "change.actor", "change.comment"),
)
BOUNDS = ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")


def with_moments(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the service with `url`, and with its four numbers as the moments `since` and `until`."""
    found = {"url" if name == "payload_url" else name: value for name, value in row.items() if name not in BOUNDS}
    major, minor, major_end, minor_end = (row[name] for name in BOUNDS)
    return found | {"since": [major, minor], "until": [major_end, minor_end]}


@command(argument("pattern", required=False))
def tags(session: Session, pattern: str | None) -> None:
    """List the global tags, or those whose names match PATTERN, such as 'prod*'.

    Example: cdb tags 'prod*'
    """
    found = session.client().tags()
    session.output.rows((tag for tag in found if not pattern or fnmatchcase(tag["name"], pattern)), TAG_COLUMNS)


@command()
def types(session: Session) -> None:
    """List the payload types.

    Example: cdb types -o json
    """
    session.output.rows(session.client().types(), ("name", "description", "created"))


STRICT = option("--strict", is_flag=True, help="Leave out payloads that have ended before the moment.")


@command(TAG_NAME, MOMENT, TYPES, STRICT, has_past=True)
def resolve(session: Session, tag: str, moment: Moment, types: tuple[str, ...], *, strict: bool) -> None:
    """Print the payload of each payload type of TAG at MOMENT.

    A payload type that is asked for with --type and has no payload gives exit code 4.

    Examples:
      cdb resolve prod 1234,5 --type PED
      cdb resolve patch,prod@12 1234
    """
    found = session.tag(tag).resolve(moment, strict=strict, types=types or None)
    session.output.rows((iov.as_dict() for iov in found.values()), IOV_COLUMNS)
    # Raises an error for the first one that has no payload.
    [found[name] for name in types]


@command(
    TAG_NAME,
    MOMENT,
    option("--to", "directory", type=PATH, required=True, help="Directory for the files."),
    TYPES,
    STRICT,
    has_past=True,
)
def get(session: Session, tag: str, moment: Moment, directory: Path, types: tuple[str, ...], *, strict: bool) -> None:
    """Download the payload files of TAG at MOMENT to a directory, and print their paths.

    Each file is verified before it gets its name. Files that are there already are verified and not downloaded again.

    Example: cdb get prod 1234 --to payloads --type PED
    """
    found = session.tag(tag).resolve(moment, strict=strict, types=types or None)
    wanted = [found[name] for name in types or found]
    with session.output.progress("payload files") as progress:
        paths = session.client().files.download(wanted, directory, progress)
    rows = [{"payload_type": iov.payload_type, "path": str(path)} for iov, path in zip(wanted, paths, strict=True)]
    session.output.rows(rows, ("path",))


@command(TAG_NAME, TYPES, *WINDOW, has_past=True)
def iovs(session: Session, tag: str, types: tuple[str, ...], **window: Any) -> None:
    """List the payloads of TAG, each with the part of the window in which it is valid.

    Example: cdb iovs prod --type PED --since 1000 --until 2000
    """
    session.output.rows((iov.as_dict() for iov in session.tag(tag).iovs(*types, **window)), IOV_COLUMNS)


@command(TAG_NAME, has_past=True)
def show(session: Session, tag: str) -> None:
    """Print what is known about TAG: status, revision, counts and limits.

    Example: cdb show prod
    """
    session.output.record(session.tag(tag).info())


@command(
    argument("a", type=TAG),
    argument("b", type=TAG),
    TYPES,
    *WINDOW,
    option("--by", type=click.Choice(["url", "checksum"]), default="url", help="What makes payloads equal."),
    option("--summary", is_flag=True, help="Count the differences of each payload type."),
)
def diff(session: Session, a: str, b: str, types: tuple[str, ...], *, summary: bool, **options: Any) -> None:
    """Print the intervals in which B has other payloads than A. Both are valid up to their ends (strict).

    Examples:
      cdb diff prod test
      cdb diff prod@3 prod@5 --summary
    """
    found = session.tag(a).diff(session.tag(b), *types, summary=summary, **options)
    if summary:
        session.output.rows(found["payload_types"], ("payload_type", "differences", "first", "last"))
    else:
        session.output.rows(found, ("payload_type", "since", "until", "a.payload_url", "b.payload_url"))


@command(
    TAG_NAME,
    argument("revision", type=click.IntRange(1), required=False),
    option("--last", type=click.IntRange(1), metavar="N", help="Only the last N changes."),
)
def log(session: Session, tag: str, revision: int | None, last: int | None) -> None:
    """Print the changes of TAG, the newest first, or what the change with REVISION removed and added.

    Examples:
      cdb log prod --last 5
      cdb log prod 12
    """
    found = session.tag(tag)
    if revision is None:
        session.output.rows(islice(found.changes(), last), CHANGE_COLUMNS)
    elif session.output.is_json:
        session.output.record(found.change(revision))
    else:
        session.output.rows(_parts_of(found.change(revision)), ("side", "what", "value", "since", "until", "checksum"))


def _parts_of(change: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """A row for each member of a change, and for each payload IOV in it."""
    for side in ("before", "after"):
        for member, value in change[side].items():
            if member == "payload_iovs":
                yield from (
                    with_moments(row) | {"side": side, "what": row["payload_list"], "value": row["payload_url"]}
                    for row in value
                )
            else:
                yield {"side": side, "what": member, "value": value}


@command(
    TAG_NAME,
    TYPES,
    *WINDOW,
    option("--required", multiple=True, metavar="NAME", help="A payload type that must be there; repeatable."),
    has_past=True,
)
def coverage(session: Session, tag: str, types: tuple[str, ...], required: Sequence[str], **window: Any) -> None:
    """Print for each payload type of TAG how much of the window is covered, and its gaps.

    Example: cdb coverage prod --since 1000 --until 2000
    """
    found = session.tag(tag).coverage(*types, required=required, **window)
    if session.output.is_json:
        session.output.record(found)
    else:
        session.output.rows(found["payload_types"], ("payload_type", "covered", "first_start", "last_end", "gaps"))
    session.output.say("There are no gaps." if found["complete"] else "There are gaps.")


@command(
    argument("url", required=False),
    option("--prefix", metavar="TEXT", help="Payloads whose URLs begin with this text, instead of URL."),
    option("--checksum", metavar="TEXT", help="Payloads with this checksum, instead of URL."),
    option("--removed", is_flag=True, help="Also the uses that have ended."),
)
def uses(session: Session, url: str | None, prefix: str | None, checksum: str | None, *, removed: bool) -> None:
    """Print where a payload is used: tags, payload types and intervals.

    Examples:
      cdb uses ped/1234.root
      cdb uses --prefix ped/
    """
    if [url, prefix, checksum].count(None) != 2:
        raise click.UsageError("Give one of URL, --prefix and --checksum.")
    found = session.client().uses(url=url, prefix=prefix, checksum=checksum, removed=removed)
    columns = ("global_tag", "payload_type", "url", "checksum", "since", "until", *(["removed"] if removed else []))
    session.output.rows(map(with_moments, found), columns)


@command(TAG_NAME, MOMENT, TYPES, has_past=True)
def explain(session: Session, tag: str, moment: Moment, types: tuple[str, ...]) -> None:
    """Print why each payload type of TAG has the payload it has at MOMENT, or none, and which change did it.

    Example: cdb explain prod 1234 --type PED
    """
    session.output.rows(session.tag(tag).explain(moment, types=types or None), REASON_COLUMNS)


@command(
    TAG_NAME,
    argument("file", type=PATH),
    option("--format", "form", type=click.Choice(["csv", "jsonl"]), help="Default: by the name of the file, or csv."),
    TYPES,
    *WINDOW,
    has_past=True,
)
def export(session: Session, tag: str, file: Path, form: str | None, **window: Any) -> None:
    """Write the payload IOVs of TAG to FILE, which `cdb import` reads. The file appears when it is complete.

    Example: cdb export prod prod.csv
    """
    form = form or ("jsonl" if file.suffix == ".jsonl" else "csv")
    count = session.tag(tag).export(file, format=form, **window)
    session.output.say(f"{count} payload IOVs written to {file}")


COMMANDS = (tags, types, resolve, get, iovs, show, diff, log, coverage, uses, explain, export)
