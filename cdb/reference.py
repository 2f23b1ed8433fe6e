"""Generate reference pages from declarations: python -m cdb.reference writes settings.md, commands.md and errors.md in docs/.

With --check it writes nothing, and exits with 1 if a committed page is out of date.
"""

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from environs import validate

from cdb.env import ROOT
from cdb.variables import GROUPS, Variable

DIRECTORY = ROOT / "docs"
UNITS = {"_SECONDS": "seconds", "_HOURS": "hours", "_BYTES": "bytes"}
# The default in the help text of an option.
DEFAULT_IN_HELP = re.compile(r" \(default: ([^)]*)\)")
KINDS = {"bool": "`true` or `false`", "list": "list, separated by commas", "path": "path", "str": "text"}

SETTINGS_INTRODUCTION = """\
<!-- Generated from cdb/variables.py by `make reference`. Do not edit it here. -->

# Settings

This page lists, for operators, every setting with its type and its default.

A setting is an environment variable, or a line of a file `.env` in the project's root:

```sh
# .env
PORT=8001
DATABASE_URL=postgresql://cdb:secret@db.example.org:5432/cdb
```

An environment variable takes precedence over the file. An empty variable counts as not set.
If a value has the wrong type or is out of range, the service does not start and prints one line
that names the setting. Any client can read the settings marked *public* at
[`user_settings/<name>`](api.md#routes).
"""


COMMANDS_INTRODUCTION = """\
<!-- Generated from the parsers of the commands by `make reference`. Do not edit it here. -->

# Commands

This page lists, for operators and developers, the commands of `manage.py` with their options. Run
`.venv/bin/python manage.py <command>`; `--help` prints all options. Commands use the running
PostgreSQL server, or start the embedded one while they run.

Options for sizes and times accept units: `8GiB`, `500MB` (1 MB is 1000² bytes, 1 MiB is 1024²),
`500ms`, `30s`, `10min`, `2h`. The help text names the unit of a number without one.

| exit code | meaning |
|---|---|
| 0 | the command was successful |
| 1 | it failed, or found what it looks for (`check_counts`, `check_intervals`); one line on standard error says what |
| 2 | an option is unknown, missing or invalid |
| 130 | Ctrl-C ended the command |
"""

# Commands of Django and of packages that the documentation describes, too.
FOREIGN_COMMANDS = {
    "check": "Check the settings. With `--deploy`, it also checks Django's rules and cdb's rules for production.",
    "spectacular": "Print the OpenAPI description of the API.",
}
# Guides to the tasks for which a command is used.
GUIDES = {
    "run": "[How the service runs](run-modes.md#what-make-run-does)",
    "serve": "[Deploy on one machine](deploy.md)",
    "reload": "[Deploy a new version](deploy.md#deploy-a-new-version)",
    "seed_scenario": "[Example data](example-data.md)",
    "check_counts": "[When data look wrong](problems.md#when-data-look-wrong)",
    "check_intervals": "[When data look wrong](problems.md#when-data-look-wrong)",
    "explain_lookup": "[Compare the lookup strategies](compare-strategies.md)",
    "strategy_indexes": "[Compare the lookup strategies](compare-strategies.md)",
    "import_iovs": "[Move tags between databases](move-tags.md)",
    "backup": "[Back up and restore](backup.md)",
    "restore": "[Back up and restore](backup.md#restore-it)",
    "record_restoration": "[Back up and restore](backup.md#a-postgresql-server-of-your-own)",
    "capacity": "[Choose the size of a machine](machine-size.md)",
    "check": "[Security](security.md)",
    "createsuperuser": "[The admin](security.md#the-admin)",
    "migrate": "[Apply migrations](own-postgresql.md#apply-migrations)",
    "spectacular": "[OpenAPI](openapi.md)",
}

ERRORS_INTRODUCTION = """\
<!-- Generated from cdb_rest/api/errors.py and cdb_rest/domain/errors.py by `make reference`. Do not edit it here. -->

# Error codes

This page lists, for authors of clients, every error code and what it means. An error response is a
JSON object with `detail`, a sentence for people, and `code`, a stable identifier for programs. If
fields of the body are invalid, each of them is a further key. A response with status 504 has the
header `Retry-After`: send the request again after that number of seconds.

## Errors of the service
"""

OTHER_ERRORS_INTRODUCTION = """\
## Errors of HTTP, of the health checks and of nginx
"""

# The errors that have no class in cdb_rest/domain/errors.py: status, code, meaning.
OTHER_ERRORS = (
    ("400", "invalid_json", "The body is not JSON."),
    (
        "400",
        "body_too_complex",
        "Arrays and objects are nested more than 16 deep, or the body has too many values: more than 10,000, in a request of "
        "rows more than 32 for each row that `CDB_MAX_BULK_ROWS` permits.",
    ),
    (
        "400",
        "incomplete_body",
        "The body ended early, or took too long: more than 30 s and 1 s for each 16 KiB, or 15 s without a byte.",
    ),
    ("400", "length_required", "The body was sent without its length, for example chunked."),
    ("400", "malformed_request", "The request is not valid HTTP."),
    ("400", "bad_request", "The form of the request is not acceptable, or the host name is unknown."),
    ("403", "cross_site_request", "A browser sent a write for a page of another site."),
    ("404", "route_not_found", "The path does not exist."),
    ("405", "method_not_allowed", "The path does not accept this method."),
    ("412", "precondition_failed", "`If-Match` or `If-Unmodified-Since` of a read failed."),
    ("413", "body_too_large", "The body is larger than `CDB_MAX_BODY_BYTES`."),
    (
        "415",
        "unsupported_media_type",
        "The headers declare the body as something other than JSON, or as compressed.",
    ),
    ("429", "too_many_logins", "Only from the admin's login, behind nginx: there were too many attempts."),
    ("500", "internal_error", "There is a bug in the service; the error was logged."),
    ("503", "migrations_missing", "Only from `/health/ready`: the database lacks migrations."),
    ("503", "database_unavailable", "Only from `/health/ready`: the database does not respond."),
    ("504", "service_unavailable", "Only behind nginx: the service itself is down or does not respond in time."),
    ("other", "refused", "The request was rejected outside of the API, for example a write to a static file."),
)


def pages() -> dict[str, Callable[[], str]]:
    """The functions that make the generated pages, by file name."""
    return {"settings.md": settings_page, "commands.md": commands_page, "errors.md": errors_page}


def settings_page() -> str:
    """The text of docs/settings.md, with a table for each group of variables."""
    sections = [SETTINGS_INTRODUCTION]
    for group in GROUPS:
        rows = "".join(_row(variable) for variable in group.variables)
        sections.append(f"## {group.title}\n\n| setting | type | default | meaning |\n|---|---|---|---|\n{rows}")
    return "\n".join(sections)


def commands_page() -> str:
    """The text of docs/commands.md, with a section for each command. Needs Django."""
    from django.core.management import get_commands

    apps = get_commands()
    names = [name for name, app in apps.items() if app in ("cdb", "cdb_rest") or name in FOREIGN_COMMANDS]
    return "\n".join([COMMANDS_INTRODUCTION, *(_command_section(apps[name], name) for name in sorted(names))])


def errors_page() -> str:
    """The text of docs/errors.md: the errors with a class, and the others. Needs Django."""
    from cdb_rest.api.errors import STATUS_OF

    head = "| status | `code` | meaning |\n|---|---|---|\n"
    own = "".join(
        f"| {status} | `{error.code}` | {_cell(' '.join((error.__doc__ or '').split()))} |\n"
        for error, status in STATUS_OF.items()
    )
    others = "".join(f"| {status} | `{code}` | {meaning} |\n" for status, code, meaning in OTHER_ERRORS)
    return "\n".join([ERRORS_INTRODUCTION, head + own, OTHER_ERRORS_INTRODUCTION, head + others])


def default_of(variable: Variable) -> str:
    """The default in the syntax of a `.env` file; empty if there is none."""
    if isinstance(variable.default, bool):
        return str(variable.default).lower()
    if isinstance(variable.default, list):
        return ",".join(variable.default)
    return "" if variable.default is None else str(variable.default)


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or check them with --check. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m cdb.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    options = parser.parse_args(arguments)
    _set_up_django()
    outdated = False
    for name, make in pages().items():
        page, file = make(), DIRECTORY / name
        if not options.check:
            file.write_text(page)
            sys.stdout.write(f"docs/{name} written.\n")
        elif not file.exists() or file.read_text() != page:
            sys.stderr.write(f"docs/{name} is out of date: run make reference, and commit it\n")
            outdated = True
    return int(outdated)


def _set_up_django() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
    django.setup()


def _command_section(app: Any, name: str) -> str:
    """The section of one command: its help text, its guide and its options, without those that every command has."""
    from django.core.management import BaseCommand, load_command_class

    guide = f"Guide: {GUIDES[name]}.\n"
    if name in FOREIGN_COMMANDS:
        return "\n".join([f"## `{name}`\n", f"{FOREIGN_COMMANDS[name]}\n", guide])
    command = load_command_class(app, name)
    parser = command.create_parser("manage.py", name)
    common = {option for action in BaseCommand().create_parser("", "")._actions for option in action.option_strings}
    actions = [one for one in parser._actions if not one.option_strings or not common.issuperset(one.option_strings)]
    help_text = _cell(str(command.help))
    parts = [f"## `{name}`\n", textwrap.fill(help_text, 100, break_on_hyphens=False) + "\n", guide]
    if actions:
        rows = "".join(_option_row(parser, action) for action in actions)
        parts.append(f"| option | default | meaning |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def _option_row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The row of an option. Its default is taken from the help text if that names it, because values have no units."""
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    default = "" if action.nargs == 0 or not action.default else str(action.default)
    if found := DEFAULT_IN_HELP.search(text):
        # The machine that generates the page does not matter.
        default = re.sub(r"(of this one), .*", r"\1", found[1])
        text = text.replace(found[0], "")
    return f"| {_option(action)} | {_cell(default)} | {_cell(text)} |\n"


def _option(action: argparse.Action) -> str:
    """An option or argument as it is written, with the name of its value or its choices."""
    if action.choices:
        value = "\\|".join(map(str, action.choices))
    else:
        names = action.metavar or action.dest.upper()
        value = names if isinstance(names, str) else " ".join(names)
    if not action.option_strings:
        return f"`{value}`"
    value = "" if action.nargs == 0 else f" {value}"
    options = ", ".join(f"`{option}{value}`" for option in action.option_strings)
    return f"{options} (required)" if action.required else options


def _cell(text: str) -> str:
    """Text for a cell of a table: on one line, without characters that Markdown would interpret as HTML or as a border."""
    return " ".join(text.split()).replace("<", "\\<").replace("|", "\\|")


def _row(variable: Variable) -> str:
    default = variable.default_text or (f"`{text}`" if (text := default_of(variable)) else "")
    public = " *Public.*" if variable.public else ""
    return f"| `{variable.name}` | {_type_of(variable)} | {default} | {variable.meaning}{public} |\n"


def _type_of(variable: Variable) -> str:
    """The type, with the unit that the name's suffix implies, and the allowed values."""
    if isinstance(variable.check, validate.OneOf):
        return ", ".join(f"`{choice}`" for choice in variable.check.choices)
    if variable.kind != "int":
        return KINDS[variable.kind]
    unit = next((unit for ending, unit in UNITS.items() if variable.name.endswith(ending)), "")
    return f"{unit or 'integer'}, {_range(variable.check)}"


def _range(check: Any) -> str:
    if check.max is None:
        return f"at least {check.min:,}"
    return f"{check.min:,} to {check.max:,}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
