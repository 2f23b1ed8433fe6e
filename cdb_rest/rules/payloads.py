"""The rule for the payload URLs of new rows."""

import re
from collections.abc import Collection
from urllib.parse import unquote

from cdb_rest.rules.errors import quoted
from cdb_rest.rules.names import CONTROL_CHARACTER

SCHEMES = ("http", "https", "file", "root", "davs")
SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")


def payload_url_fault(url: str, more_schemes: Collection[str] = ()) -> str:
    """Why `url` cannot be the payload URL of a new row; empty if it can.

    A text without a scheme is a relative path. `more_schemes` are allowed besides `SCHEMES`.
    """
    if not url.strip():
        return f"The payload URL {quoted(url)} is blank."
    if found := CONTROL_CHARACTER.search(url):
        code = f"U+{ord(found[0]):04X}"
        return (
            f"The payload URL {quoted(url)} has the control character {quoted(found[0])} ({code}) at position "
            f"{found.start() + 1}."
        )
    if (".." in url or "%" in url) and ".." in re.split(r"[/\\]", unquote(url)):
        return f"The payload URL {quoted(url)} has the path segment '..'."
    if (scheme := SCHEME.match(url)) and scheme[1].lower() not in map(str.lower, allowed := [*SCHEMES, *more_schemes]):
        return (
            f"The payload URL {quoted(url)} has the scheme {quoted(scheme[1])}; allowed are {', '.join(allowed)} "
            "(CDB_PAYLOAD_SCHEMES adds others), and relative paths."
        )
    return ""
