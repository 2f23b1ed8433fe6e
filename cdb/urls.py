"""The root URL configuration, with all routes of the service."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from cdb_rest.access import issuers
from cdb_rest.api import service
from cdb_rest.api.base import errors
from cdb_rest.api.base.json import JSONRenderer
from cdb_rest.middleware import NOT_FOUND

# Only the admin and the pages with forms need the middleware's CSRF check; all other views are exempt. For writes to the API
# with a session's cookie, `cdb_rest.api.base.authorization.RoutePermission` makes this check.
urlpatterns = [
    re_path(r"^api/cdb_rest/?$", service.IndexView.as_view()),
    path("api/cdb_rest/", include("cdb_rest.api.urls")),
    re_path(r"^health/live/?$", csrf_exempt(service.live)),
    re_path(r"^health/ready/?$", csrf_exempt(service.ready)),
    # Without an optional slash, because proxies allow or deny this exact path.
    path("metrics", csrf_exempt(service.metrics)),
    re_path(
        r"^api/schema/?$",
        SpectacularJSONAPIView.as_view(renderer_classes=[JSONRenderer], http_method_names=["get", "head"]),
        name="schema",
    ),
    re_path(r"^api/docs/?$", SpectacularSwaggerSplitView.as_view(url_name="schema", http_method_names=["get", "head"])),
    path("admin/", admin.site.urls),
    path("favicon.ico", csrf_exempt(service.favicon)),
    path("", include("cdb_web.urls")),
    # Every other path. `RouteMiddleware` knows it by its name.
    re_path("", csrf_exempt(errors.route_not_found), name=NOT_FOUND),
]

if issuers.for_login() is not None:
    # Imported only now, because these views import requests, which takes 0.1 s.
    from cdb_rest.api import login

    # Before the last route, which matches every path. The names are those that mozilla-django-oidc uses.
    urlpatterns[:0] = [
        path("oidc/authenticate/", login.LoginView.as_view(), name="oidc_authentication_init"),
        path("oidc/callback/", login.CallbackView.as_view(), name="oidc_authentication_callback"),
    ]

if settings.DEBUG:
    from debug_toolbar.toolbar import debug_toolbar_urls

    # Before the last route, which matches every path.
    urlpatterns[:0] = debug_toolbar_urls()

handler400 = errors.bad_request
handler404 = errors.route_not_found
handler500 = errors.server_error
