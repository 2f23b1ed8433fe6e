"""The settings of deploy/postgresql.conf, sized for memory and disk."""

import os
import re

from cdb import directories, env
from cdb.serving import templates
from cdb.serving.pools import connections

FILE = "postgresql.conf"
SETTING = re.compile(r"^(\w+) = '?([^'#]*?)'?\s*(?:#.*)?$", re.MULTILINE)
MEGABYTE = 2**20


def sizes(memory_megabytes: int, disk_megabytes: int) -> dict[str, str]:
    """The values of the placeholders on a machine with this much memory and disk, as the tables in the file have them."""

    def share(whole: int, part: int, least: int, most: int) -> str:
        return f"{max(least, min(most, whole // part))}MB"

    return {
        "SHARED_BUFFERS": share(memory_megabytes, 4, 128, 16384),
        "EFFECTIVE_CACHE_SIZE": f"{max(256, memory_megabytes * 5 // 8)}MB",
        "WORK_MEM": share(memory_megabytes, 512, 4, 64),
        "MAINTENANCE_WORK_MEM": share(memory_megabytes, 16, 64, 2048),
        "MAX_WAL": share(disk_megabytes, 20, 256, 8192),
        "MIN_WAL": share(disk_megabytes, 160, 80, 1024),
        "SLOT_WAL": share(disk_megabytes, 10, 512, 10240),
    }


def memory_here() -> int:
    """The memory of this machine in megabytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MEGABYTE


def disk_here() -> int:
    """The size of the disk that CDB_DATA_DIR is on, in megabytes."""
    return directories.disk_megabytes(env.read()["CDB_DATA_DIR"])


def options(memory_megabytes: int | None = None, cores: int | None = None) -> dict[str, str]:
    """The settings by name, for this machine or one of that size, and the connections of the pools."""
    values = sizes(memory_megabytes or memory_here(), disk_here())
    text = templates.fill(FILE, values | {"CONNECTIONS": connections(cores)})
    return dict(SETTING.findall(text))
