"""The base class of the commands that call services."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cdb_rest.rules.errors import CdbError


class ServiceCommand(BaseCommand):
    """A command that ends with the message of an error of a service (`CdbError`), and with exit code 1."""

    requires_system_checks = []

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        """Run the command. Raises `CommandError` for an error of a service."""
        self._begin = time.monotonic()
        try:
            return super().execute(*arguments, **options)
        except CdbError as error:
            raise CommandError(str(error)) from error

    def took(self) -> str:
        """The time since the start of the command, such as 1.5 s."""
        return f"{time.monotonic() - self._begin:.1f} s"
