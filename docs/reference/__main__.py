"""Generate reference pages from declarations: python -m docs.reference writes them in docs/.

With --check it writes nothing, and exits with 1 if a committed page is out of date.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import django

from cdb.env import ROOT

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
django.setup()

from docs.reference import client, commands, errors, roles, settings  # noqa: E402 -- Django must be set up

DIRECTORY = ROOT / "docs"
PAGES = {
    "settings.md": settings.page,
    "commands.md": commands.page,
    "errors.md": errors.page,
    "roles.md": roles.page,
    "client-reference.md": client.page,
}


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or check them with --check. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    options = parser.parse_args(arguments)
    outdated = False
    for name, make in PAGES.items():
        page, file = make(), DIRECTORY / name
        if not options.check:
            file.write_text(page)
            sys.stdout.write(f"docs/{name} written.\n")
        elif not file.exists() or file.read_text() != page:
            sys.stderr.write(f"docs/{name} is out of date: run make reference, and commit it\n")
            outdated = True
    return int(outdated)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
