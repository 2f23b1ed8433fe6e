"""Protection of browsers: security headers on every response, and rejection of cross-site writes.

The headers are constants, because responses that do not come from Django have the same ones
(`cdb_rest/wsgi/fast_lookup.py`, `cdb/worker/error_responses.py`, `deploy/nginx.conf`).
"""

from django.conf import settings
from django.http import HttpRequest

POLICY = "Content-Security-Policy"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")

# For JSON: a browser that opens it directly loads and runs nothing. Source: OWASP REST Security Cheat Sheet.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": Django's CSRF protection of the admin needs the Referer header.
    "Referrer-Policy": "same-origin",
    POLICY: "default-src 'none'; frame-ancestors 'none'",
}
# For the admin and the API documentation, whose scripts are static files of this service.
PAGE_HEADERS = HEADERS | {
    POLICY: "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def is_cross_site_write(request: HttpRequest) -> bool:
    """Whether a browser sends this write for a page of another site, according to `Origin` or `Sec-Fetch-Site`.

    False for the methods in `SAFE_METHODS`. If writes need no token, only the network protects the service, and a page
    of another site could use a browser inside the network to write. Clients other than browsers send neither header.
    The port counts: a page of another program on the same host is another site. Origins in `CSRF_TRUSTED_ORIGINS` are
    accepted, unless `Sec-Fetch-Site` says that the site is another one.

    Raises `DisallowedHost` if `Origin` must be compared with a Host header that is not allowed.
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
