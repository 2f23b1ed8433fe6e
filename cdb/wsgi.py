"""The WSGI application that granian and gunicorn serve."""

import gc
import os
import signal
import sys
from wsgiref.types import WSGIApplication

from django.core.wsgi import get_wsgi_application

from cdb.processes.parent import end_with_parent

# The servers import this module in the main thread of each of their processes, after any change of the user.
end_with_parent()
if "granian" in sys.modules:
    # The handler of its main process, which a new process has inherited, would ignore a signal until the process serves.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")

django: WSGIApplication = get_wsgi_application()

from django.conf import settings  # noqa: E402 -- all imports below need Django to be set up
from django.urls import resolve  # noqa: E402

from cdb_rest.access import issuers  # noqa: E402
from cdb_rest.api.base import errors  # noqa: E402
from cdb_rest.compiled.registry import registry  # noqa: E402
from cdb_rest.connections import durability, postgresql, replicas  # noqa: E402
from cdb_rest.observe.request_observer import Observed  # noqa: E402
from cdb_rest.wsgi.pinned import Pinned  # noqa: E402
from cdb_rest.wsgi.refusals import Overload, ReadAccess  # noqa: E402
from cdb_rest.wsgi.shortcut import Shortcut  # noqa: E402

postgresql.enforce()
durability.watch()
replicas.watch()
registry.enable()
# Import the routes and their views now, instead of with the first request.
resolve("/")
# An invalid CDB_ISSUERS_FILE must prevent the start of the server, instead of failing later requests.
issuers.configured()

application = django
# With DEBUG every request goes through Django, so that the debug toolbar shows it.
if not settings.DEBUG:
    application = Shortcut(application)
if not settings.CDB_ANONYMOUS_READS:
    application = ReadAccess(application, refuse=django)
application = Pinned(application, refuse=django)
application = Observed(Overload(application), on_error=errors.respond)
# Large requests make many objects, and each collection looks at all that were loaded before.
gc.set_threshold(50_000)
