"""docs/settings.md, from `cdb.variables`."""

from itertools import groupby

from cdb.variables import VARIABLES, Variable

UNITS = {"_SECONDS": "seconds", "_BYTES": "bytes"}
KINDS = {
    "bool": "`true` or `false`",
    "list": "list, separated by commas",
    "networks": "list of networks, separated by commas",
    "path": "path",
    "regex": "regular expression",
    "str": "text",
}

INTRODUCTION = """\
<!-- Generated from cdb/variables.toml by `make reference`. Do not edit it here. -->

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
that names the setting. Numbers of seconds and of bytes may have a unit, such as `30s`, `10min` or
`8GiB`. A variable that begins with `CDB_` and is no setting is a warning at the start. Any client
can read the settings marked *public* at [`user_settings/<name>`](api.md#routes).
"""


def page() -> str:
    """The text of docs/settings.md, with a table for each group of variables."""
    sections = [INTRODUCTION]
    for title, variables in groupby(VARIABLES, lambda one: one.group):
        rows = "".join(_row(variable) for variable in variables)
        sections.append(f"## {title}\n\n| setting | type | default | meaning |\n|---|---|---|---|\n{rows}")
    return "\n".join(sections)


def default_of(variable: Variable) -> str:
    """The default in the syntax of a `.env` file; empty if there is none."""
    if isinstance(variable.default, bool):
        return str(variable.default).lower()
    if isinstance(variable.default, list):
        return ",".join(variable.default)
    return "" if variable.default is None else str(variable.default)


def _row(variable: Variable) -> str:
    default = variable.default_text or (f"`{text}`" if (text := default_of(variable)) else "")
    public = " *Public.*" if variable.public else ""
    return f"| `{variable.name}` | {_type_of(variable)} | {default} | {variable.meaning}{public} |\n"


def _type_of(variable: Variable) -> str:
    """The type, with the unit that the name's suffix implies, and the allowed values."""
    if variable.choices:
        return ", ".join(f"`{choice}`" for choice in variable.choices)
    if variable.type != "int":
        return KINDS[variable.type]
    unit = next((unit for ending, unit in UNITS.items() if variable.name.endswith(ending)), "")
    limits = f"at least {variable.min:,}" if variable.max is None else f"{variable.min:,} to {variable.max:,}"
    return f"{unit or 'integer'}, {limits}"
