"""The app's registration with Django."""

from django.apps import AppConfig


class CdbRestConfig(AppConfig):
    name = "cdb_rest"

    def ready(self) -> None:
        """Have the checks registered."""
        from cdb import checks  # noqa: F401 -- once Django is set up
