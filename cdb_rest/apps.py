"""The app's registration with Django."""

from django.apps import AppConfig


class CdbRestConfig(AppConfig):
    name = "cdb_rest"
