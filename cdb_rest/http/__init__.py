"""HTTP without a framework for views: security headers, caching, and the lookup as a request and a response."""
