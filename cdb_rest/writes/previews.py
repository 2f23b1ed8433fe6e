"""Previews: what a write would change in a global tag. The write is made, compared with the state before it, and rolled back."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from cdb_rest.analysis.contents import Contents, read_contents
from cdb_rest.analysis.difference import Comparison
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_rest.rules.moment import EVERYTHING
from cdb_rest.writes.locks import lock_global_tag
from cdb_rest.writes.transactions import roll_back

Result = TypeVar("Result")
Seen = TypeVar("Seen")


def preview(tag: str, service: Callable[[], Result], inspect: Callable[[Result, Comparison], Seen]) -> Seen:
    """Call a write service, then `inspect` with its result and the comparison of the tag before (a) and after it (b), and
    return what `inspect` returns. All that was changed in the database is undone.

    `service` must not be a dry run. `inspect` is in the transaction of the write, so it sees the tag as it would be, and must
    not use caches. Other writers of the tag wait meanwhile. A tag that `service` creates has no lists in a. Raises the errors
    of both.
    """

    def execute() -> Seen:
        before = _before(tag)
        result = service()
        return inspect(result, Comparison(before, read_contents([(tag, None)]), EVERYTHING))

    return roll_back(execute)


def _before(tag: str) -> Contents:
    """The contents of a tag, which stay readable after a write. The tag is locked, so that no other writer changes it."""
    try:
        lock_global_tag(tag)
    except GlobalTagNotFoundError:
        return read_contents([])
    contents = read_contents([(tag, None)])
    lists = {
        name: tuple(item._replace(rows_version=item.version) for item in lists)
        for name, lists in contents.lists.items()
    }
    return replace(contents, lists=lists)
