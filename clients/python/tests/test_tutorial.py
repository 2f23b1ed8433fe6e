"""The tutorial, docs/client-tutorial.ipynb, prints what it shows."""

import contextlib
import io
import json

from .conftest import CLIENT

NOTEBOOK = CLIENT.parents[1] / "docs" / "client-tutorial.ipynb"


def test_every_cell_prints_what_is_stored(server, monkeypatch):
    monkeypatch.setenv("CDB_SERVER", server)
    names = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)  # noqa: S102 -- our own notebook
            assert printed.getvalue() == "".join("".join(output["text"]) for output in cell["outputs"]), cell["id"]
