"""One concrete path of each route that writes, and the pattern of each that reads."""

import re

from cdb_rest.api.urls import views_and_paths

WRITES = [
    (method, re.sub(r"<str:(\w+)>", r"1", paths[0]))
    for view, paths in views_and_paths()
    for method in ("POST", "PUT", "DELETE")
    if hasattr(view, method.lower())
]
READS = [re.sub(r"<str:(\w+)>", r"{}", paths[0]) for view, paths in views_and_paths() if hasattr(view, "get")]
