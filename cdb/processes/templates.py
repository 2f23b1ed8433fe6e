"""Configuration files from the templates in deploy/: replacing the placeholders, and writing the files."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from cdb.env import ROOT

PLACEHOLDER = re.compile(r"@([A-Z_]+)@")
COMMENT = re.compile(r"\s*[#;]")


def fill(name: str, values: Mapping[str, object]) -> str:
    """The text of the template `deploy/<name>` with each placeholder `@NAME@` replaced by the value of `NAME`.

    Comments, which are lines that begin with `#` or `;`, are not changed. Raises `KeyError` for a placeholder without a value.
    """
    lines = (ROOT / "deploy" / name).read_text().splitlines(keepends=True)
    return "".join(
        line if COMMENT.match(line) else PLACEHOLDER.sub(lambda found: str(values[found[1]]), line) for line in lines
    )


def write(path: Path, text: str) -> None:
    """Write a file that only its owner can read and write. An existing file is replaced atomically."""
    unfinished = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    unfinished.replace(path)
