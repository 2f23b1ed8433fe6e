"""One concrete path of each route that writes, and the pattern of each that reads."""

import re

from cdb_rest.api.routes import ROUTES

WRITES = [
    (method, re.sub(r"<str:(\w+)>", r"1", paths[0]))
    for view, paths in ROUTES
    for method in ("POST", "PUT", "DELETE")
    if hasattr(view, method.lower())
]
READS = [re.sub(r"<str:(\w+)>", r"{}", paths[0]) for view, paths in ROUTES if hasattr(view, "get")]
