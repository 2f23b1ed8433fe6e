"""Logging out, and the login with an account of this service. The page also leads to the login at an identity provider."""

from typing import Any

from django.contrib.auth import logout
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect

from cdb_rest.access.memory import check_logins
from cdb_web.page import form_page, show


class _Login(LoginView):
    """Django's login, which follows only redirects to this service."""

    def post(self, request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        check_logins(request)
        return super().post(request, *arguments, **named)

    def render_to_response(self, context: dict[str, Any], **_named: Any) -> HttpResponse:
        form = context["form"]
        problem = " ".join(form.non_field_errors() or (["Fill in both fields."] if form.errors else []))
        values = {"next": context["next"], "name": form["username"].value() or "", "problem": problem}
        return show(self.request, "login.html", values | {"may_log_in": False})


_respond = _Login.as_view()


@form_page
def log_in(request: HttpRequest) -> HttpResponseBase:
    """A form for name and password. After many wrong passwords, the client gets a page with status 429."""
    return _respond(request)


@form_page
def log_out(request: HttpRequest) -> HttpResponse:
    """A form that ends the session of this service. A session at an identity provider continues."""
    if request.method != "POST":
        return show(request, "log_out.html", {})
    logout(request)
    return HttpResponseRedirect("/", status=303)
