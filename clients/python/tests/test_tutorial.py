"""The tutorial, docs/client-tutorial.ipynb, prints what it shows."""

import contextlib
import io
import json

import pytest

from .conftest import CLIENT

NOTEBOOK = CLIENT.parents[1] / "docs" / "client-tutorial.ipynb"


@pytest.fixture(scope="module")
def notebook():
    return json.loads(NOTEBOOK.read_text())


def test_every_cell_prints_what_is_stored(notebook, server, monkeypatch):
    monkeypatch.setenv("CDB_SERVER", server)
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)  # noqa: S102 -- our own notebook
            assert printed.getvalue() == "".join("".join(output["text"]) for output in cell["outputs"]), cell["id"]


def test_it_is_a_notebook_of_version_4(notebook):
    """The members that the format requires; Jupyter opens no file without them."""
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert cell.keys() == {"cell_type", "id", "metadata", "source"} | code
        for output in cell.get("outputs", []):
            assert output.keys() == {"name", "output_type", "text"}
