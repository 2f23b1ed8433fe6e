"""Options that every command accepts, and the session that they describe."""

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from cdb_client.cli.output import FORMS, Output
from cdb_client.errors import CdbError, InputError
from cdb_client.moments import as_moment

if TYPE_CHECKING:
    from cdb_client.client import Client
    from cdb_client.tag import Tag

# The environment variable with which the shell asks for completions.
COMPLETION = "_CDB_COMPLETE"
# The longest time to ask the service for names while the shell completes a line.
COMPLETION_SECONDS = 1.0
# The options that only have a meaning where a tag is read.
PAST = ("rev", "at")


@dataclass
class Session:
    """What the options that every command accepts say, and the client that they describe."""

    server: str | None = None
    snapshot: str | None = None
    form: str | None = None
    retry_for: float | None = None
    is_fresh: bool = False
    has_no_cache: bool = False
    is_quiet: bool = False
    rev: int | None = None
    at: str | None = None
    _client: "Client | None" = field(default=None, repr=False)

    @property
    def output(self) -> Output:
        """The output in the form that was asked for."""
        return Output(self.form, is_quiet=self.is_quiet)

    @property
    def is_interactive(self) -> bool:
        """Whether the command can ask the user."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def client(self) -> "Client":
        """The client, made once."""
        if self._client is None:
            # Imported here, because it takes longer than to print a help text.
            from cdb_client.client import Client
            from cdb_client.transport import Transport

            Transport.announce = staticmethod(self.output.say)  # type: ignore[method-assign]
            cache = False if self.has_no_cache else None
            self._client = Client(
                self.server, snapshot=self.snapshot, cache=cache, retry_for=self.retry_for, fresh=self.is_fresh
            )
        return self._client

    def tag(self, text: str) -> "Tag":
        """The tag of an argument: TAG, TAG@REVISION, TAG@TIME, or several with commas, of which the first decides.

        `--rev` and `--at` hold where the argument itself names no revision and no time.
        """
        parts = [part.partition("@") for part in text.split(",")]
        tag = self.client().tag(*(name for name, _, _ in parts))
        states = [state for _, _, state in parts]
        if any(states) and (self.rev or self.at):
            raise InputError(f"{text} names a revision or a time: leave --rev and --at out.")
        if self.rev and len(parts) > 1:
            raise InputError("Several tags have a revision each: write TAG@REVISION,TAG@REVISION instead of --rev.")
        states = [str(self.rev or self.at)] if self.rev or self.at else states
        if all(state.isdecimal() or not state for state in states):
            return tag.rev(*(int(state) if state else None for state in states)) if any(states) else tag
        if len(set(states)) > 1:
            raise InputError(f"Several tags are read at one time: write it as --at (got {text!r}).")
        return tag.at(states[0])


class TagType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The name of a tag, which the shell completes."""

    name = "tag"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The tags whose names begin so. A service that does not answer at once gives none."""
        session = ctx.ensure_object(Session)
        session.retry_for = 0.0

        def stop(*_: object) -> None:
            raise TimeoutError

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, COMPLETION_SECONDS)
        try:
            names = [tag["name"] for tag in session.client().tags()]
        except (CdbError, OSError):
            return []
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    session = context.ensure_object(Session)
    if value is not None and value is not False:
        setattr(session, str(parameter.name), value)


def _shared_options() -> list[click.Option]:
    shared = partial(option, callback=_store, expose_value=False)
    return [
        shared("--server", metavar="SERVER", help="Address of the service, or a name of config.toml."),
        shared("--snapshot", metavar="FILE", help="Answer from this snapshot, without network."),
        shared("-o", "--output", "form", type=click.Choice(FORMS), help="Default: table on a terminal, else plain."),
        shared("--retry-for", type=click.FloatRange(0), metavar="SECONDS", help="How long to repeat failed requests."),
        shared("--fresh", "is_fresh", is_flag=True, help="Ask the service again for all that may have changed."),
        shared("--no-cache", "has_no_cache", is_flag=True, help="Neither read nor write the cache on disk."),
        shared("-q", "--quiet", "is_quiet", is_flag=True, help="Print data and errors only."),
        shared("--rev", type=click.IntRange(1), metavar="REVISION", help="The tag at this revision; or TAG@REVISION."),
        shared("--at", metavar="TIME", help="The tag at this time (ISO 8601); or TAG@TIME."),
    ]


class Group(click.Group):
    """A group of commands that accepts the shared options in front of the command."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += _shared_options()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, as they were added."""
        return list(self.commands)


def command(
    *parameters: click.Parameter, name: str | None = None, group: Group | None = None, has_past: bool = False
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function whose first argument is the session. Only one that `has_past` accepts --rev and --at."""
    shared = [option for option in _shared_options() if has_past or option.name not in PAST]

    def decorate(function: Callable[..., None]) -> click.Command:
        def callback(session: Session, /, **values: Any) -> None:
            if not has_past and (session.rev or session.at):
                raise click.UsageError("Here --rev and --at have no meaning.", click.get_current_context())
            function(session, **values)

        # Examples keep their lines.
        text = cleandoc(function.__doc__ or "").replace("\n\nExample", "\n\n\b\nExample")
        params = [*parameters, *shared]
        made = click.Command(name or function.__name__, callback=click.pass_obj(callback), params=params, help=text)
        if group:
            group.add_command(made)
        return made

    return decorate


def argument(name: str, **more: Any) -> click.Argument:
    """An argument of a command."""
    return click.Argument([name], **more)


def option(*names: str, **more: Any) -> click.Option:
    """An option of a command."""
    return click.Option(names, **more)


TAG, PATH = TagType(), click.Path(path_type=Path)
TAG_NAME = argument("tag", type=TAG)
MOMENT = argument("moment", type=as_moment)
TYPES = option("--type", "--types", "types", multiple=True, metavar="NAME", help="Only this payload type; repeatable.")
WINDOW = (
    option("--since", type=as_moment, metavar="MOMENT", help="Only from this moment on."),
    option("--until", type=as_moment, metavar="MOMENT", help="Only up to this moment."),
)
