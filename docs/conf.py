"""The configuration of Sphinx, which builds the documentation site: `make docs`."""

import re
import shutil
import sys
from pathlib import Path

import drf_spectacular_sidecar
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent.parent))

project = "cdb"
html_title = "cdb"
copyright = "2026, The cdb authors"
extensions = ["myst_parser"]
html_theme = "furo"
# Sections can be linked by their headings, as on GitHub.
myst_heading_anchors = 4
myst_links_external_new_tab = True
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

    django.setup()
    files = Path(app.outdir) / "openapi"
    files.mkdir(exist_ok=True)
    call_command("spectacular", format="openapi-json", file=str(files / "openapi.json"))
    # As a script, because browsers let no page read files by itself when it is opened from the file system.
    description = (files / "openapi.json").read_text()
    (files / "openapi.js").write_text(f"const description = {description};\n")
    for name in ("swagger-ui.css", "swagger-ui-bundle.js"):
        shutil.copy(SWAGGER_UI / name, files / name)


def setup(app: Sphinx) -> None:
    """Register the hooks."""
    app.connect("source-read", drop_links_to_code)
    app.connect("build-finished", add_openapi)
