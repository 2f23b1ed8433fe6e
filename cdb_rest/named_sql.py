"""The hand-written SQL: one statement, one file under ``sql/``, loaded by name when the module that uses it is imported.

A misspelt name therefore stops the server's start, not a request.
"""

from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent.parent / "sql"


def load(name: str) -> str:
    """The text of ``sql/<name>.sql`` without its header comment. Raises `FileNotFoundError` for an unknown name."""
    lines = (DIRECTORY / f"{name}.sql").read_text().splitlines()
    while lines and (lines[0].startswith("--") or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines)
