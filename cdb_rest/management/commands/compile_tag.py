"""manage.py compile_tag"""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import Error
from tqdm import tqdm

from cdb_rest.compiled.compiler import compile_tag
from cdb_rest.compiled.pack import UnusableError, readable_packs
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.quantities import AT_LEAST_ONE


class Command(ServiceCommand):
    help = (
        "Compile the payload lists of a global tag: write a file from which this host answers lookups nearly without the "
        "database. Lists that other tags share are compiled once. The service does this by itself for tags that are asked "
        "often. A running service uses the file within a second."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tag", metavar="NAME", help="name of the global tag")
        parser.add_argument(
            "--rev",
            dest="revision",
            metavar="N",
            help="compile this past revision, for requests with rev=N (default: the present)",
            **AT_LEAST_ONE,
        )

    def handle(self, *, tag: str, revision: int | None, **options: Any) -> None:
        try:
            with interruptible(), tqdm(disable=None, leave=False, unit=" rows", unit_scale=True) as bar:

                def show(rows: int) -> None:
                    bar.update(rows - bar.n)

                state, lists, rows, size = compile_tag(tag, revision, packs=readable_packs(), progress=show)
        except (UnusableError, OSError, Error) as error:
            raise CommandError(f"{tag} cannot be compiled: {' '.join(str(error).split())}") from error
        self.stdout.write(
            f"Compiled {tag} at revision {state.revision} in {self.took()}: {lists:,} of "
            f"{len(state.ids):,} payload lists, {rows:,} IOVs, {size / 2**20:,.1f} MiB."
        )
        if not settings.CDB_COMPILED_BYTES:
            self.stdout.write("A service with these settings does not use it: CDB_COMPILED_BYTES is 0.")
