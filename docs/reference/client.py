"""docs/client-reference.md, from the commands of the client and the docstrings of its Python API."""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from cdb.env import ROOT
from docs.reference.markdown import cell

# The client is a project of its own, which need not be installed here.
sys.path.append(str(ROOT / "clients" / "python"))

import cdb_client
from cdb_client.cli.main import cdb
from cdb_client.cli.options import Session
from cdb_client.errors import CdbError
from cdb_client.requests import Requests
from cdb_client.writes import Writes

INTRODUCTION = """\
<!-- Generated from the client's commands and docstrings by `make reference`. Do not edit it here. -->

# Reference of the client

This page lists the options of the command `cdb` and the functions of the Python package `cdb_client`.
The guide [Use the client](client.md) shows how to use them.
"""
# The packages in front of the names of classes.
QUALIFIED = re.compile(r"\b(?:cdb_client|collections|datetime|pathlib|typing)\.(?:[a-z_]+\.)*(?=\w)")
CLASSES = (cdb_client.Client, cdb_client.Tag, cdb_client.IOVs, cdb_client.Resolution, cdb_client.PayloadIOV)


def page() -> str:
    """The text of docs/client-reference.md."""
    shared = [option for option in cdb.params if option.name in vars(Session()) or not option.expose_value]
    parts = [INTRODUCTION, "## Options of all commands\n", _paragraphs(cdb.help or ""), _table(shared)]
    parts += [_command_section(name, command, shared) for name, command in _commands(cdb, "cdb")]
    parts += [_class_section(one) for one in (*CLASSES, Writes, Requests)]
    parts.append(
        "## Errors\n\n| class | exit code | meaning |\n|---|---|---|\n" + "".join(dict.fromkeys(_errors(CdbError)))
    )
    return "\n".join(parts)


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")


def _command_section(name: str, command: click.Command, shared: list[click.Parameter]) -> str:
    text, _, examples = inspect.cleandoc(command.help or "").replace("\b\n", "").partition("Example")
    lines = [line.strip() for line in examples.partition(":")[2].splitlines() if line.strip()]
    names = {option.name for option in shared}
    own = [one for one in command.params if isinstance(one, click.Option) and one.name not in names]
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *(piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]")])
    parts = [f"## `{usage}`\n", _paragraphs(text), "```sh\n" + "\n".join(lines) + "\n```\n"]
    return "\n".join([*parts, *([_table(own)] if own else [])])


def _table(options: list[Any]) -> str:
    rows = [option.get_help_record(click.Context(cdb)) for option in options if isinstance(option, click.Option)]
    shown = (f"| `{cell(record[0])}` | {cell(record[1])} |\n" for record in rows if record)
    return "| option | meaning |\n|---|---|\n" + "".join(shown)


def _class_section(one: type) -> str:
    parts = [f"## Class `{one.__name__}`\n", _signature(one.__name__, one), _paragraphs(inspect.getdoc(one) or "")]
    for name, member in vars(one).items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        function = member.fget if isinstance(member, property) else member
        parts += [f"### `{one.__name__}.{name}`\n"]
        if not isinstance(member, property):
            parts.append(_signature(name, function))
        parts.append(_paragraphs(inspect.getdoc(member) or ""))
    return "\n".join(parts)


def _signature(name: str, function: Any) -> str:
    parameters = inspect.signature(function)
    shown = parameters.replace(parameters=[one for one in parameters.parameters.values() if one.name != "self"])
    text = QUALIFIED.sub("", f"{name}{shown}").replace("'Tag'", "Tag")
    return f"```python\n{text}\n```\n"


def _errors(kind: type[CdbError]) -> Iterator[str]:
    first = (inspect.getdoc(kind) or "").split("\n\n")[0]
    yield f"| `{kind.__name__}` | {kind.exit_code} | {cell(first)} |\n"
    for one in kind.__subclasses__():
        yield from _errors(one)


def _paragraphs(text: str) -> str:
    found = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(textwrap.fill(cell(one), 100, break_on_hyphens=False) for one in found if one.strip()) + "\n"
