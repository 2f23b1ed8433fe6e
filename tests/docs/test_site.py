"""The documentation site that `make docs` builds: without warnings and without files of other hosts."""

import re
import shutil
import subprocess
import sys

import pytest

from cdb.env import ROOT

# Built once, in one process.
pytestmark = pytest.mark.xdist_group("site")


def build(source, site):
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", source, site],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", directory)
    assert done.returncode == 0, done.stderr
    return directory


def test_every_page_is_in_the_navigation_and_can_be_searched(site):
    index = (site / "index.html").read_text()
    search = (site / "searchindex.js").read_text()
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]:
        name = str(page.relative_to(ROOT / "docs").with_suffix(""))
        assert name == "index" or f'href="{name}.html"' in index
        assert f'"{name}"' in search


def test_it_has_the_openapi_description_and_what_displays_it(site):
    assert '"/api/cdb_rest/payloadiovs/": {' in (site / "openapi" / "openapi.js").read_text()
    for name in re.findall(r'"(openapi/[^"]+)"', (site / "openapi.html").read_text()):
        assert (site / name).stat().st_size > 1000


def test_a_link_that_leads_nowhere_is_an_error(tmp_path):
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "conf.py", tmp_path / "docs")
    (tmp_path / "docs" / "index.md").write_text("# Title\n\n[gone](gone.md), [here](index.md#nowhere)\n")
    done = build(tmp_path / "docs", tmp_path / "site")
    assert done.returncode and "gone" in done.stderr and "nowhere" in done.stderr
