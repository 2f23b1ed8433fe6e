"""The Django app that registers the commands and system checks of this package."""

from django.apps import AppConfig


class CdbConfig(AppConfig):
    name = "cdb"

    def ready(self) -> None:
        """Register the system checks."""
        from cdb import checks  # noqa: F401 -- can only be imported after Django is set up
