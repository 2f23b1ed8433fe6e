"""manage.py strategy_indexes"""

import time
from typing import Any

from django.core.management.base import CommandError, CommandParser

from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible
from cdb_rest.strategies.indexes import CREATE, create, drop, indexes


class Command(ServiceCommand):
    help = (
        "Create or drop the indexes that some strategies of the lookup need for a comparison. The service itself does not "
        "use them, and they make every insert slower. The service continues meanwhile. An incomplete index, left by an "
        "interrupted create, is replaced."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["create", "drop"], help="create or drop all of these indexes")

    def handle(self, *, action: str, **options: Any) -> None:
        begin = time.monotonic()
        with interruptible():
            changed = sum(self._create(name) if action == "create" else self._drop(name) for name in CREATE)
        done = "created" if action == "create" else "dropped"
        self.stdout.write(f"Indexes {done}: {changed} of {len(CREATE)} ({time.monotonic() - begin:.1f} s).")

    def _create(self, name: str) -> bool:
        begin = time.monotonic()
        found = indexes().get(name)
        if found and found.is_complete:
            self.stdout.write(f"{name} already exists: {_megabytes(found.size)}.")
            return False
        if found and found.is_being_built:
            raise CommandError(f"{name} is being created by another process; wait until it ends and try again")
        if found:
            self.stdout.write(f"{name} is incomplete and is created again.")
        create(name)
        took = time.monotonic() - begin
        created = indexes().get(name)
        self.stdout.write(f"{name} created in {took:.1f} s: {_megabytes(created.size if created else 0)}.")
        return True

    def _drop(self, name: str) -> bool:
        begin = time.monotonic()
        found = indexes().get(name)
        if not found:
            self.stdout.write(f"{name} does not exist.")
            return False
        drop(name)
        took = time.monotonic() - begin
        self.stdout.write(f"{name} dropped in {took:.1f} s: {_megabytes(found.size)} freed.")
        return True


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
