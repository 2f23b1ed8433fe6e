"""The configuration of Sphinx, which builds the documentation site: `make docs`."""

import os
import re
import shutil
from io import StringIO
from pathlib import Path

import drf_spectacular_sidecar
from sphinx.application import Sphinx

project = "cdb"
html_title = "cdb"
copyright = "2026, The cdb authors"
extensions = ["myst_parser"]
html_theme = "furo"
# Sections can be linked by their headings, as on GitHub.
myst_heading_anchors = 4
html_copy_source = False
# Pygments does not know all of nginx's syntax.
suppress_warnings = ["misc.highlighting_failure"]

SWAGGER_UI = Path(drf_spectacular_sidecar.__file__).parent / "static/drf_spectacular_sidecar/swagger-ui-dist"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#]+)[^)]*\)")


def drop_links_to_code(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace links to files outside of `docs/`, which are not part of the site, by their texts."""
    root = Path(app.srcdir)

    def replace(link: re.Match[str]) -> str:
        target = ((root / page).parent / link[2]).resolve()
        return link[0] if target.is_relative_to(root) else link[1]

    source[0] = LINK.sub(replace, source[0])


def add_openapi(app: Sphinx, _error: Exception | None) -> None:
    """Add the OpenAPI description, and Swagger UI, which displays it."""
    import django
    from django.core.management import call_command

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
    django.setup()
    files = Path(app.outdir) / "openapi"
    files.mkdir(exist_ok=True)
    description = StringIO()
    call_command("spectacular", format="openapi-json", stdout=description)
    # As a script, because a page that is opened from the file system may not load JSON files.
    (files / "openapi.js").write_text(f"const description = {description.getvalue()};\n")
    for name in ("swagger-ui.css", "swagger-ui-bundle.js"):
        shutil.copy(SWAGGER_UI / name, files / name)


def setup(app: Sphinx) -> None:
    """Register the hooks."""
    app.connect("source-read", drop_links_to_code)
    app.connect("build-finished", add_openapi)
