"""The programs that tests run, and the Debian package of each.

`python3 tests/programs.py` prints the packages that are missing here. It needs no package of Python.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import pytest

TOOLS = Path(__file__).parent.parent / ".tools"
# Where Debian keeps programs for administrators, which is not on the path of other accounts.
MORE_PATHS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
# Every machine for which `make test` is made has bash, coreutils, make, mount, runuser and useradd; they are not listed.
PACKAGES = {
    "/usr/lib/postgresql/15/bin/postgres": "postgresql-15",
    "buildah": "buildah",
    "chromium-headless-shell": "chromium-headless-shell",
    "curl": "curl",
    "git": "git",
    "mmdebstrap": "mmdebstrap",
    "nginx": "nginx-light",
    "pkill": "procps",
    "setpriv": "util-linux",
    "openssl": "openssl",
    "pgbouncer": "pgbouncer",
    "logrotate": "logrotate",
    "podman": "podman",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "runc": "runc",
    "shellcheck": "shellcheck",
    "systemd-analyze": "systemd",
    "wrk": "wrk",
}
# What `make package-tools` fetches into .tools.
FETCHED = ("helm", "kubeconform", "crds", "compose-spec.json")


def find(name: str) -> str | None:
    """The path of an installed program, or None."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(MORE_PATHS))


def missing(*names: str) -> str:
    """Which of the programs are not installed and how to install them, in one line; empty where all are there."""
    packages = {name: PACKAGES[name] for name in names}
    absent = [name for name in names if not find(name)]
    if not absent:
        return ""
    listed = f"{absent[0]} is" if len(absent) == 1 else f"{', '.join(absent[:-1])} and {absent[-1]} are"
    return f"{listed} missing: apt-get install {' '.join(sorted({packages[name] for name in absent}))}"


def require(*names: str) -> None:
    """Skip the test where one of the programs is not installed."""
    if reason := missing(*names):
        _skip(reason)


def needs(*names: str) -> "pytest.MarkDecorator":
    """A mark for tests and modules: skips where one of the programs is not installed."""
    import pytest

    reason = missing(*names)
    return pytest.mark.skipif(bool(reason), reason=reason)


def fetched(name: str) -> Path:
    """The path of a file, directory or program that `make package-tools` fetches; skips where it is missing."""
    assert name in FETCHED
    found = TOOLS / name if (TOOLS / name).exists() else shutil.which(name)
    if not found:
        _skip("the tools of tests/packaging are missing: make package-tools, which needs Go 1.24 or newer")
    return Path(found)


def _skip(reason: str) -> NoReturn:
    # Imported here, because this file also runs where no package of Python is installed.
    import pytest

    pytest.skip(reason)


if __name__ == "__main__":
    sys.stdout.write(" ".join(sorted({package for name, package in PACKAGES.items() if not find(name)})) + "\n")
