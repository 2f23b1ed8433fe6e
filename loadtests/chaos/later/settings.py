"""The service's settings, with one app more."""

from cdb.settings import *  # noqa: F403
from cdb.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "loadtests.chaos.later"]
