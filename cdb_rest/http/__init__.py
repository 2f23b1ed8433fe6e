"""HTTP logic that needs no view: security headers, caching, and the lookup from query string to response."""
