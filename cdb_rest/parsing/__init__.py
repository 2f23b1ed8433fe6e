"""Reading requests: parameters of paths and query strings, bodies in JSON, and names that a route does not have."""
