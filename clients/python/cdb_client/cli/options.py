"""The group of commands `cdb`, and the arguments and options that several commands have."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from cdb_client import __version__
from cdb_client.cli.output import FORMS, Row, print_rows, say
from cdb_client.client import Client
from cdb_client.errors import InputError
from cdb_client.moments import as_moment
from cdb_client.tag import Tag
from cdb_client.transport import Transport


@dataclass
class Session:
    """The values of the options that all commands share, the client with these values, and its output."""

    server: str | None = None
    snapshot: str | None = None
    form: str | None = None
    retry_for: float | None = None
    fresh: bool = False

    @cached_property
    def client(self) -> Client:
        """The client."""
        Transport.announce = staticmethod(say)  # type: ignore[method-assign]
        return Client(self.server, snapshot=self.snapshot, retry_for=self.retry_for, fresh=self.fresh)

    def tag(self, text: str) -> Tag:
        """The tag of an argument: TAG, TAG@REVISION or TAG@TIME, or several with commas."""
        names, _, states = zip(*(part.partition("@") for part in text.split(",")), strict=True)
        if all(state.isdecimal() or not state for state in states):
            return self.client.tag(*names).rev(*(int(state) if state else None for state in states))
        if len(set(states)) > 1:
            raise InputError(f"Several tags are read at one time: write the same @TIME after each name (got {text!r}).")
        return self.client.tag(*names).at(states[0])

    def print(self, rows: Iterable[Row], columns: str, document: Any = None) -> None:
        """Print rows in the form that was asked for; `output.print_rows` describes the arguments."""
        print_rows(rows, columns.split(), self.form or ("table" if sys.stdout.isatty() else "plain"), document)

    def print_members(self, document: Row) -> None:
        """Print an object: a row for each of its members."""
        self.print(({"name": name, "value": value} for name, value in document.items()), "name value", document)


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    session = context.ensure_object(Session)
    if value is not None and value is not False:
        setattr(session, str(parameter.name), value)


_shared = partial(click.Option, callback=_store, expose_value=False)
SHARED_OPTIONS = [
    _shared(["--server"], metavar="SERVER", help="Address of the service, or a name of config.toml."),
    _shared(["--snapshot"], metavar="FILE", help="Answer from this snapshot, without network."),
    _shared(["-o", "--output", "form"], type=click.Choice(FORMS), help="Default: table on a terminal, else plain."),
    _shared(["--retry-for"], type=click.FloatRange(0), metavar="SECONDS", help="How long to repeat failed requests."),
    _shared(["--fresh"], is_flag=True, help="Ask the service again for all that may have changed."),
]


class Command(click.Command):
    """A command that accepts the shared options. Its function gets the session first."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += SHARED_OPTIONS
        # Examples keep their lines.
        self.help = cleandoc(self.help or "").replace("\n\nExample", "\n\n\b\nExample")

    def invoke(self, ctx: click.Context) -> None:
        """Call the function."""
        ctx.invoke(self.callback, ctx.obj, **ctx.params)  # type: ignore[arg-type]


class Group(click.Group):
    """A group of commands that accepts the shared options in front of the command."""

    command_class, group_class = Command, type

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += SHARED_OPTIONS
        self.no_args_is_help = False


@click.group(cls=Group)
@click.version_option(__version__, message="cdb %(version)s")
def cdb() -> None:
    """Read and write conditions: the client of cdb, the conditions database service.

    A TAG is the name of a global tag; NAME@REVISION or NAME@TIME is its past. Of several names with commas between them, the
    first one with a valid payload decides. A MOMENT is MAJOR, MAJOR,MINOR or open.

    Exit codes: 0 done, 1 unexpected, 2 usage, 3 not allowed or not logged in, 4 not found, 5 refused by the state of the tag,
    6 wrong data, 75 try later, 130 interrupted.
    """


PATH = click.Path(path_type=Path)
tag = click.argument("tag")
moment = click.argument("moment", type=as_moment)
types = click.option("--type", "--types", "types", multiple=True, metavar="NAME", help="Only this type; repeatable.")
strict = click.option("--strict", is_flag=True, help="Leave out payloads that have ended before the moment.")


def window(function: Callable[..., None]) -> Callable[..., None]:
    """Add --since and --until."""
    until = click.option("--until", type=as_moment, metavar="MOMENT", help="Only up to this moment.")
    since = click.option("--since", type=as_moment, metavar="MOMENT", help="Only from this moment on.")
    return since(until(function))


def write(function: Callable[..., None]) -> Callable[..., None]:
    """Add --reason and --dry-run."""
    dry_run = click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
    return click.option("-m", "--reason", "comment", metavar="TEXT", help="Why, for the change log.")(dry_run(function))
