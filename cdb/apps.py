"""The registration of the commands and checks with Django."""

from django.apps import AppConfig


class CdbConfig(AppConfig):
    name = "cdb"

    def ready(self) -> None:
        """Have the checks registered."""
        from cdb import checks  # noqa: F401 -- once Django is set up
