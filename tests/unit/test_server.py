"""The environment with which `make run` starts gunicorn."""

import pytest

from cdb import env
from cdb.processes import server


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, {"CDB_STRATEGIES": "true", "CDB_OPEN_WRITES": "true"}),
        ({"CDB_STRATEGIES": ""}, {"CDB_STRATEGIES": "true", "CDB_OPEN_WRITES": "true"}),
        ({"CDB_STRATEGIES": "0"}, {"CDB_OPEN_WRITES": "true"}),
        ({"CDB_STRATEGIES": "1", "CDB_OPEN_WRITES": "false"}, {}),
        ({"CDB_STRATEGIES": "false", "DEBUG": "1"}, {"CDB_OPEN_WRITES": "true"}),
    ],
)
@pytest.mark.parametrize("where", ["environment", "file"])
def test_strategies_are_served_and_writes_are_open_unless_the_operator_says_otherwise(
    monkeypatch, tmp_path, where, said, expected
):
    lines = "".join(f"{name}={value}\n" for name, value in said.items()) if where == "file" else ""
    (tmp_path / "settings").write_text(lines)
    variables = {"CDB_ENV_FILE": str(tmp_path / "settings")} | (said if where == "environment" else {})
    monkeypatch.setattr(env.os, "environ", variables)
    monkeypatch.setattr(env, "read", env.read.__wrapped__)
    assert server.settings_of_run() == expected
