"""docs/commands.md, from the parsers of the commands."""

import argparse
import re
import textwrap
from typing import Any

from django.core.management import BaseCommand, get_commands, load_command_class

from docs.reference.markdown import cell

# The default in the help text of an option.
DEFAULT_IN_HELP = re.compile(r" \(default: ([^)]*)\)")
INTRODUCTION = """\
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
| 1 | it failed, or a check found a fault (`adopt`, `check_coverage`, `check_history`, `check_intervals`, `check_names`) |
| 2 | an option is unknown, missing or invalid; `adopt`: the source is not a database of nopayloaddb |
| 130 | Ctrl-C ended the command |
"""

# Commands of Django and of packages that the documentation describes, too.
FOREIGN_COMMANDS = {
    "check": "Check the settings. With `--deploy`, it also checks Django's rules and cdb's rules for production.",
    "spectacular": "Print the OpenAPI description of the API.",
}
# Guides to the tasks for which a command is used.
GUIDES = {
    "adopt": "[Move from nopayloaddb](adopt.md)",
    "run": "[How the service runs](architecture.md#what-make-run-does)",
    "serve": "[Deploy on one machine](deploy.md)",
    "prepare": "[Deploy a new version](deploy.md#deploy-a-new-version)",
    "compiler": "[Compiled lists](caching.md#compiled-lists)",
    "seed_scenario": "[Example data](glossary.md#example-data)",
    "compile_tag": "[Compiled lists](caching.md#use-it)",
    "compiled": "[Compiled lists](caching.md#use-it)",
    "check_coverage": "[Ten questions](ten-questions.md#5-is-anything-missing)",
    "check_history": "[Keep, prune and check the history](history.md#check-the-history)",
    "check_names": "[Names](api.md#names)",
    "check_intervals": "[When data look wrong](monitoring.md#when-data-look-wrong)",
    "explain_lookup": "[Compare the lookup strategies](requests.md#compare-the-lookup-strategies)",
    "strategy_indexes": "[Compare the lookup strategies](requests.md#compare-the-lookup-strategies)",
    "clear_iovs": "[Clearing an interval](api.md#clearing-an-interval)",
    "undo_change": "[Undoing a change](api.md#undoing-a-change)",
    "detached_iovs": "[Write](web-pages.md#write)",
    "import_iovs": "[Move tags between databases](web-pages.md#move-tags-between-databases)",
    "export_nopayloaddb": "[Move from nopayloaddb](adopt.md#7-going-back)",
    "prune_history": "[Keep, prune and check the history](history.md#prune-the-history)",
    "backup": "[Back up and restore](backup.md)",
    "restore": "[Back up and restore](backup.md#restore)",
    "record_restoration": "[Back up and restore](backup.md#restore-any-second-pgbackrest)",
    "token": "[Control access](access.md#tokens-of-this-service)",
    "grant": "[Control access](access.md#rules)",
    "revoke": "[Control access](access.md#rules)",
    "who-may": "[Control access](access.md#find-out-why-a-request-is-refused)",
    "capacity": "[Choose the size of a machine](deploy.md#choose-the-size-of-a-machine)",
    "check": "[Security](security.md)",
    "migrate": "[Apply migrations](deploy.md#apply-migrations)",
    "spectacular": "[OpenAPI](openapi.md)",
}


def page() -> str:
    """The text of docs/commands.md, with a section for each command of this project and of `FOREIGN_COMMANDS`.

    Django must be set up. Raises `KeyError` for a command without a guide in `GUIDES`.
    """
    apps = get_commands()
    names = [name for name, app in apps.items() if app in ("cdb", "cdb_rest") or name in FOREIGN_COMMANDS]
    return "\n".join([INTRODUCTION, *(_command_section(apps[name], name) for name in sorted(names))])


def _command_section(app: Any, name: str) -> str:
    """The section of one command: its help text, its guide and its options, without those that every command has."""
    guide = f"Guide: {GUIDES[name]}.\n"
    if name in FOREIGN_COMMANDS:
        return "\n".join([f"## `{name}`\n", f"{FOREIGN_COMMANDS[name]}\n", guide])
    command = load_command_class(app, name)
    parser = command.create_parser("manage.py", name)
    common = {option for action in BaseCommand().create_parser("", "")._actions for option in action.option_strings}
    actions = [
        item for item in parser._actions if not item.option_strings or not common.issuperset(item.option_strings)
    ]
    help_text = cell(str(command.help))
    parts = [f"## `{name}`\n", textwrap.fill(help_text, 100, break_on_hyphens=False) + "\n", guide]
    if actions:
        rows = "".join(_option_rows(parser, action) for action in actions)
        parts.append(f"| option | default | meaning |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def _option_rows(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The row of an option; for an action with options of its own, a row for it and one for each of them."""
    if not isinstance(action, argparse._SubParsersAction):
        return _option_row(parser, action)
    rows = []
    for choice, described in zip(action.choices, action._choices_actions, strict=True):
        own = action.choices[choice]
        rows.append(f"| `{choice}` | | {cell(described.help or '')} |\n")
        options = [item for item in own._actions if item.dest != "help"]
        rows += [_option_row(own, option).replace("| ", f"| `{choice}` ", 1) for option in options]
    return "".join(rows)


def _option_row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The row of an option, with the default from its help text, which has a unit, or else from the parser."""
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    default = "" if action.nargs == 0 or not action.default else str(action.default)
    if found := DEFAULT_IN_HELP.search(text):
        # The value for the machine that generates the page is left out.
        default = re.sub(r"(of this one), .*", r"\1", found[1])
        text = text.replace(found[0], "")
    return f"| {_option(action)} | {cell(default)} | {cell(text)} |\n"


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
