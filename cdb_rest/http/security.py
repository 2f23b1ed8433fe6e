"""Protection of browsers: security headers on every response, and no writes on behalf of pages of other sites.

The headers are constants, because the responses that are made before Django, by gunicorn and by nginx have the same ones
(`cdb_rest/wsgi/lookup_first.py`, `cdb/worker/substitutes.py`, `deploy/nginx.conf`).
"""

from django.conf import settings
from django.http import HttpRequest

POLICY = "Content-Security-Policy"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")

# For data: opened by itself in a browser it may load and run nothing. After OWASP's REST Security Cheat Sheet.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not less: the admin's forms are told from those of other sites by where they say they come from.
    "Referrer-Policy": "same-origin",
    POLICY: "default-src 'none'; frame-ancestors 'none'",
}
# For the admin and the description of the API, whose scripts are files of this service.
PAGE_HEADERS = HEADERS | {
    POLICY: "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def is_cross_site_write(request: HttpRequest) -> bool:
    """Whether a browser sends a write for a page of another site, as its `Origin` or `Sec-Fetch-Site` says.

    A service without accounts is protected by its network alone, and the browsers in that network can reach it. Clients
    that are no browsers send neither header. Ports count: a page of another program on the same host is another site's.
    """
    if request.method in SAFE_METHODS:
        return False
    if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        return True
    origin = request.headers.get("Origin")
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return False
    scheme, _, host = origin.partition("://")
    return scheme not in ("http", "https") or host != request.get_host()
