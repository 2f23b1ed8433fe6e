"""Configuration files from the templates in deploy/: replacing the placeholders, and writing the files."""

import os
import re
from pathlib import Path

from cdb.env import ROOT

DEPLOY = ROOT / "deploy"
PLACEHOLDER = re.compile(r"@([A-Z_]+)@")
COMMENT = re.compile(r"\s*[#;]")


def source(name: str) -> str:
    """The text of the template `deploy/<name>`, with its placeholders."""
    return (DEPLOY / name).read_text()


def fill(name: str, values: dict[str, object]) -> str:
    """The text of the template `deploy/<name>` with each placeholder `@NAME@` replaced by the value of `NAME`.

    Lines that begin with `#` or `;` are comments and are not changed.

    Raises `KeyError` for a placeholder without a value.
    """
    lines = source(name).splitlines(keepends=True)
    return "".join(
        line if COMMENT.match(line) else PLACEHOLDER.sub(lambda found: str(values[found[1]]), line) for line in lines
    )


def write(path: Path, text: str, owner: tuple[int, int] | None = None) -> None:
    """Write a file that only its owner can read and write. An existing file is replaced atomically.

    `owner` is the user id and group id of the file, by default those of this process.
    """
    unfinished = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    if owner:
        os.chown(unfinished, *owner)
    unfinished.replace(path)
