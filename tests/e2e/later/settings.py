"""The service's settings with one additional app."""

from cdb.settings import *  # noqa: F403
from cdb.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.e2e.later"]
