"""All routes of the service."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerView

from cdb_rest.api import errors
from cdb_rest.api.json import JSONRenderer
from cdb_rest.api.views import health
from cdb_rest.api.views.metrics import metrics

urlpatterns = [
    path("api/cdb_rest/", include("cdb_rest.api.routes")),
    re_path(r"^health/live/?$", health.live),
    re_path(r"^health/ready/?$", health.ready),
    re_path(r"^metrics/?$", metrics),
    re_path(
        r"^api/schema/?$",
        SpectacularJSONAPIView.as_view(renderer_classes=[JSONRenderer], http_method_names=["get", "head"]),
        name="schema",
    ),
    re_path(r"^api/docs/?$", SpectacularSwaggerView.as_view(url_name="schema", http_method_names=["get", "head"])),
    path("admin/", admin.site.urls),
    path("", health.welcome),
    re_path("", errors.route_not_found),
]

if settings.DEBUG:
    from debug_toolbar.toolbar import debug_toolbar_urls

    # Before the last route, which takes every path.
    urlpatterns[:0] = debug_toolbar_urls()

handler400 = errors.bad_request
handler404 = errors.route_not_found
handler500 = errors.server_error
