"""The settings of deploy/postgresql.conf, sized for a memory."""

import os
import re

from cdb.serving import templates
from cdb.serving.pools import connections

FILE = "postgresql.conf"
SETTING = re.compile(r"^(\w+) = '?([^'#]*?)'?\s*(?:#.*)?$", re.MULTILINE)
MEGABYTE = 2**20


def sizes(memory_megabytes: int) -> dict[str, str]:
    """The values of the placeholders on a machine with this much memory, as the table in the file has them."""

    def share(part: int, least: int, most: int) -> str:
        return f"{max(least, min(most, memory_megabytes // part))}MB"

    return {
        "SHARED_BUFFERS": share(4, 128, 16384),
        "EFFECTIVE_CACHE_SIZE": f"{max(256, memory_megabytes * 5 // 8)}MB",
        "WORK_MEM": share(512, 4, 64),
        "MAINTENANCE_WORK_MEM": share(16, 64, 2048),
    }


def memory_here() -> int:
    """The memory of this machine in megabytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MEGABYTE


def options(memory_megabytes: int | None = None, cores: int | None = None) -> dict[str, str]:
    """The settings by name, for this machine or one of that size, and the connections of the pools."""
    text = templates.fill(FILE, sizes(memory_megabytes or memory_here()) | {"CONNECTIONS": connections(cores)})
    return dict(SETTING.findall(text))
