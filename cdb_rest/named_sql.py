"""Named SQL: the statements in the files of ``sql/``, each below a line ``-- name:``, loaded when the service starts.

So a misspelt name fails when the module that uses it is imported, not in a request.
"""

import re
from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent.parent / "sql"
NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _read() -> dict[str, str]:
    """All statements by name, without the comments above them. Raises `ValueError` if two have the same name."""
    found: dict[str, str] = {}
    for file in sorted(DIRECTORY.glob("*.sql")):
        _, *parts = NAME.split(file.read_text())
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"{file} has a second statement {name}")
            found[name] = re.sub(r"\A(--.*\n|\s*\n)*", "", text).rstrip()
    return found


STATEMENTS = _read()


def load(name: str) -> str:
    """The text of a statement. Raises `KeyError` for an unknown name."""
    return STATEMENTS[name]
