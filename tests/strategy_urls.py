"""All routes of the service including those of the strategies, as the setting CDB_STRATEGIES adds them."""

from django.urls import include, path

from cdb.urls import handler400, handler404, handler500
from cdb.urls import urlpatterns as plain
from cdb_rest.api.urls import STRATEGY_ROUTES, patterns

__all__ = ["handler400", "handler404", "handler500", "urlpatterns"]
urlpatterns = [path("api/cdb_rest/", include(patterns(STRATEGY_ROUTES))), *plain]
