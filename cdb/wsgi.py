"""The WSGI application that gunicorn serves."""

import os
from wsgiref.types import WSGIApplication

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")

application: WSGIApplication = get_wsgi_application()

from django.conf import settings  # noqa: E402 -- all imports below need Django to be set up
from django.urls import resolve  # noqa: E402

from cdb_rest.compiled import registry  # noqa: E402
from cdb_rest.connections import deadlines  # noqa: E402
from cdb_rest.identity import issuers  # noqa: E402
from cdb_rest.observe.metrics import MetricsObserver  # noqa: E402
from cdb_rest.observe.request_log import RequestLog  # noqa: E402
from cdb_rest.routes import LOOKUP_SPELLINGS  # noqa: E402
from cdb_rest.wsgi.fast_conditional_get import FastConditionalGet  # noqa: E402
from cdb_rest.wsgi.fast_lookup import FastLookup  # noqa: E402
from cdb_rest.wsgi.instrumentation import Instrumented  # noqa: E402
from cdb_rest.wsgi.read_access import ReadAccess  # noqa: E402
from cdb_rest.wsgi.replica_reads import ReplicaReads  # noqa: E402

deadlines.enforce()
registry.enable()
# Import the routes and their views before the workers are forked. Otherwise each worker would import them
# with its first request, in 0.2 s and into memory of its own.
resolve("/")

# With DEBUG every request goes through Django, so that the debug toolbar shows it.
if not settings.DEBUG:
    application = ReplicaReads(application, "/api/cdb_rest/")
    application = FastConditionalGet(application, "/api/cdb_rest/")
    application = FastLookup(application, [f"/api/cdb_rest/{path}" for path in LOOKUP_SPELLINGS])

if not settings.CDB_ANONYMOUS_READS:
    application = ReadAccess(application, "/api/cdb_rest/")
# An invalid CDB_ISSUERS_FILE must prevent the start of the server, instead of failing later requests.
issuers.configured()

application = Instrumented(application, [RequestLog(), MetricsObserver()])
