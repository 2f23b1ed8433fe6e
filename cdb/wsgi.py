"""The WSGI application that gunicorn serves."""

import os
from wsgiref.types import WSGIApplication

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")

application: WSGIApplication = get_wsgi_application()

from django.conf import settings  # noqa: E402 -- once Django is set up, as all below
from django.urls import resolve  # noqa: E402

from cdb_rest.connections import deadlines  # noqa: E402
from cdb_rest.observe.metrics import MetricsObserver  # noqa: E402
from cdb_rest.observe.records import Records  # noqa: E402
from cdb_rest.routes import LOOKUP_SPELLINGS  # noqa: E402
from cdb_rest.wsgi.conditional_first import ConditionalFirst  # noqa: E402
from cdb_rest.wsgi.from_replica import FromReplica  # noqa: E402
from cdb_rest.wsgi.lookup_first import LookupFirst  # noqa: E402
from cdb_rest.wsgi.observed import Observed  # noqa: E402

deadlines.serve()
# Loads the routes and their views. Otherwise each worker would load them with its first request, in 0.2 s and into memory of
# its own.
resolve("/")

# In development every request goes through Django, so that the toolbar sees it.
if not settings.DEBUG:
    application = FromReplica(application, "/api/cdb_rest/")
    application = ConditionalFirst(application, "/api/cdb_rest/")
    application = LookupFirst(application, [f"/api/cdb_rest/{path}" for path in LOOKUP_SPELLINGS])

application = Observed(application, [Records(), MetricsObserver()])
