"""Protection of browsers: security headers on every response.

The headers are constants, because responses that do not come from Django have the same ones
(`cdb_rest/wsgi/shortcut.py`, `deploy/nginx-errors.conf`).
"""

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
