"""Directories with restricted permissions, and paths for Unix sockets."""

import hashlib
import os
import pwd
import re
import stat
import tempfile
from pathlib import Path

from cdb.env import ConfigurationError

# A file system in memory, which not every machine has.
MEMORY = Path("/dev/shm")  # noqa: S108
# The path of a socket has at most 107 bytes, including a name such as "/.s.PGSQL.5432" at its end.
LONGEST_SOCKET_DIRECTORY = 85


def for_sockets(wanted: Path, forbidden: str) -> Path:
    """The path of a directory for sockets: `wanted`, or one under the temporary directory if `wanted` is not suitable.

    It is not suitable if it is too long for a socket, or if the regular expression `forbidden` matches a part of it.
    The other path depends only on the parent of `wanted`. The directory is not created.
    """
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_DIRECTORY and not re.search(forbidden, str(wanted)):
        return wanted
    return Path(tempfile.gettempdir()) / f"cdb-{digest(wanted.parent)}"


def in_memory(wanted: Path) -> Path:
    """The path of a directory in memory whose name is derived from `wanted`, or `wanted` if the machine has no /dev/shm."""
    return MEMORY / f"cdb-{wanted.name}-{digest(wanted)}" if MEMORY.is_dir() else wanted


def digest(path: Path) -> str:
    """A short name, of 16 hexadecimal digits, that is derived from a path."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def make_private(path: Path, account: pwd.struct_passwd | None, mode: int = 0o700) -> None:
    """Create a directory that belongs to `account` (None: the account of this process), with the permissions `mode`.

    The parent directory must exist. It may be writable for other accounts, so an existing directory is not trusted if
    it has another owner or wider permissions: raises `ConfigurationError`. Raises `OSError` if it can't be created.
    """
    owner = account.pw_uid if account else os.geteuid()
    if not os.path.lexists(path):
        # Another process that creates it at the same time must not find it before it has its owner.
        unfinished = Path(tempfile.mkdtemp(prefix=f"{path.name}-", dir=path.parent))
        try:
            unfinished.chmod(mode)
            if account:
                os.chown(unfinished, account.pw_uid, account.pw_gid, follow_symlinks=False)
            # This replaces an empty directory. It fails if the other process already uses its own.
            unfinished.rename(path)
        except OSError:
            unfinished.rmdir()
            if not os.path.lexists(path):
                raise
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o777 & ~mode:
        found = f"uid {status.st_uid}, mode 0{status.st_mode & 0o777:o}"
        raise ConfigurationError(
            f"{path} must be a directory of uid {owner} with mode 0{mode:o} (got {found}); remove it"
        )
