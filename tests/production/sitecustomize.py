"""Start the service without the packages for development, as in production.

Libraries of the service import some of these packages where they find them, which takes a fifth of the start. Python
imports this module first, because `tests/conftest.py` puts its directory on `PYTHONPATH`.
"""

import os
import sys

HIDDEN = ("docutils", "greenlet", "jinja2", "pygments", "requests", "rich")
PROGRAMS = ("manage.py", "granian", "gunicorn")

# A package of production, which only the login at an identity provider needs. Django REST framework imports it wherever it finds
# it, for its test client.
if os.environ.get("CDB_ISSUERS_FILE"):
    HIDDEN = tuple(name for name in HIDDEN if name != "requests")

if any(argument.endswith(PROGRAMS) for argument in sys.orig_argv):
    # An import of a module that is None raises ModuleNotFoundError.
    sys.modules.update(dict.fromkeys(HIDDEN))
