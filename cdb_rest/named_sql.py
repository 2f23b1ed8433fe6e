"""Named SQL: each statement is a file under ``sql/``, loaded when the module that uses it is imported.

So a misspelt name fails when the server starts, not in a request.
"""

from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent.parent / "sql"


def load(name: str) -> str:
    """The text of ``sql/<name>.sql`` without its header comment. Raises `FileNotFoundError` for an unknown name."""
    lines = (DIRECTORY / f"{name}.sql").read_text().splitlines()
    while lines and (lines[0].startswith("--") or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines)
