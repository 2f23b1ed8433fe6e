"""The configuration templates in deploy/, whose placeholders are replaced by values."""

import os
import re
from pathlib import Path

from cdb.env import ROOT

DEPLOY = ROOT / "deploy"
PLACEHOLDER = re.compile(r"@([A-Z_]+)@")
COMMENT = re.compile(r"\s*[#;]")


def source(name: str) -> str:
    """The text of `deploy/<name>`, with its placeholders."""
    return (DEPLOY / name).read_text()


def fill(name: str, values: dict[str, object]) -> str:
    """The text of `deploy/<name>` with each `@NAME@` outside of comments replaced by its value.

    Raises `KeyError` for a placeholder without a value.
    """
    lines = source(name).splitlines(keepends=True)
    return "".join(
        line if COMMENT.match(line) else PLACEHOLDER.sub(lambda found: str(values[found[1]]), line) for line in lines
    )


def write(path: Path, text: str, owner: tuple[int, int] | None = None) -> None:
    """Write a file that only its owner can read. The file is replaced atomically.

    `owner` is the user id and group id of the owner, by default those of this process.
    """
    unfinished = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    if owner:
        os.chown(unfinished, *owner)
    unfinished.replace(path)
