"""The memory and disk of this machine, and settings of PostgreSQL that are shares of them."""

import os
import shutil
from pathlib import Path


def memory_megabytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20


def disk_megabytes(path: Path) -> int:
    """The size of the file system that `path` is on, or will be when it is made."""
    existing = next(one for one in (path, *path.parents) if one.exists())
    return shutil.disk_usage(existing).total // 2**20


def share(megabytes: int, part: int, least: int, most: int) -> str:
    """One `part`-th of so many megabytes, between `least` and `most`, as PostgreSQL writes sizes."""
    return f"{max(least, min(most, megabytes // part))}MB"
