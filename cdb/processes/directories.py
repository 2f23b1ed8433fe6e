"""Directories that other accounts must be kept out of, or let through to, and places for sockets."""

import hashlib
import os
import pwd
import re
import stat
import tempfile
from pathlib import Path

from cdb.env import ConfigurationError

# Memory that looks like a file system, on the machines that have it.
MEMORY = Path("/dev/shm")  # noqa: S108
# A socket's path must fit into 107 bytes, with a name such as "/pool/.s.PGSQL.6432" at its end.
LONGEST_SOCKET_DIRECTORY = 85


def for_sockets(wanted: Path, forbidden: str) -> Path:
    """`wanted`, or a directory under the temporary one where that path can't serve.

    It can't if it is too long for a socket or contains what the pattern `forbidden` matches.
    """
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_DIRECTORY and not re.search(forbidden, str(wanted)):
        return wanted
    return Path(tempfile.gettempdir()) / f"cdb-{digest(wanted.parent)}"


def digest(path: Path) -> str:
    """A plain name for what belongs to a path and is kept elsewhere."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def make_private(path: Path, account: pwd.struct_passwd | None, mode: int = 0o700) -> None:
    """Make a directory that belongs to `account`, or to ourselves, and that no other account may write to.

    It may be in a place that others write to, so one that is there already and is not like that is not trusted:
    raises `ConfigurationError`.
    """
    try:
        path.mkdir(mode=mode)
        # Whatever the umask took away.
        path.chmod(mode)
        if account:
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    except FileExistsError:
        owner = account.pw_uid if account else os.geteuid()
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o777 & ~mode:
            raise ConfigurationError(
                f"{path} must be a directory of uid {owner} with mode 0{mode:o}; remove it"
            ) from None
