"""Generator of docs/roles.md, from the roles (`cdb_rest/rules/access.py`) and the table of routes."""

import re

from cdb_rest.api.urls import view_of
from cdb_rest.http.security import SAFE_METHODS
from cdb_rest.routes import ROUTES, Route
from cdb_rest.rules.access import ACTIONS, MEANINGS

# The type of a parameter, in a path as Django writes it.
PARAMETER = re.compile("<str:")

INTRODUCTION = """\
<!-- Generated from cdb_rest/rules/access.py and cdb_rest/routes.py by `make reference`. Do not edit it here. -->

# Roles

This page lists, for administrators and authors of clients, the roles, what each permits, and the
role that each route needs. [Control access](access.md) explains how to give roles.

A role applies to the global tags and payload types that match the patterns of its rule. Each role
includes those before it.

"""
ROUTES_INTRODUCTION = """\

## Roles for routes

A write to a locked tag needs the role manager, even if the table names contributor. A write that
gives a tag the status frozen needs the role publisher. A change of a whole tag needs a rule for all
payload types. A new status needs a rule for all tags. To move a payload list or a payload IOV out
of a tag needs the role manager for that tag, too.

Reads need no role, or the role reader if `CDB_ANONYMOUS_READS` is off. Where a write needs the role reader, every client with
a token or a login may send it, and needs the role only if `CDB_ANONYMOUS_READS` is off. The acceptance of [a
request](change-requests.md) needs the role for its write, and the role manager for all payload types if the tag is locked.

"""


def page() -> str:
    """Return the text of docs/roles.md. Django must be set up before this module is imported."""
    roles = "".join(f"| {role} | {meaning} |\n" for role, meaning in MEANINGS.items())
    actions = "".join(f"| `{action}` | {role} |\n" for action, role in ACTIONS.items())
    routes = "".join(_row(route) for route in ROUTES if route.writes is not None)
    return "".join(
        [
            INTRODUCTION,
            f"| role | permits to |\n|---|---|\n{roles}",
            "\n## Actions of `manage.py who-may`\n\n",
            f"| action | role |\n|---|---|\n{actions}",
            ROUTES_INTRODUCTION,
            f"| path | method | role |\n|---|---|---|\n{routes}",
        ]
    )


def _row(route: Route) -> str:
    methods = [name.upper() for name in view_of(route).http_method_names if hasattr(view_of(route), name)]
    paths = ", ".join(f"`{PARAMETER.sub('<', path)}`" for path in route.paths)
    return f"| {paths} | {', '.join(method for method in methods if method not in SAFE_METHODS)} | {route.writes} |\n"
