"""The page that logs out."""

from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from cdb_web.page import form_page, show


@form_page
def log_out(request: HttpRequest) -> HttpResponse:
    """A form that ends the session of this service. A session at an identity provider continues."""
    if request.method != "POST":
        return show(request, "log_out.html", {})
    logout(request)
    return HttpResponseRedirect("/", status=303)
