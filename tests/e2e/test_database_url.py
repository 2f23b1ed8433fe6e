"""DATABASE_URL: the error message for an invalid one."""

import subprocess
import sys

import pytest

from cdb import env


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("postgresql://missing@127.0.0.1:1/cdb", "can't reach the database at 127.0.0.1:1/cdb"),
        ("postgresql://u:secret@127.0.0.1:1/cdb?connect_timeout=x", "127.0.0.1:1"),
        ("mysql://u@h/d", "DATABASE_URL must look like"),
        ("postgresql://u@h?nonsense=1", "DATABASE_URL is not valid: invalid URI query parameter"),
        ("postgresql://u:secret%rd@h/d", "DATABASE_URL is not valid: invalid percent-encoded token"),
        ("postgresql://127.0.0.1:1", "can't reach the database at 127.0.0.1:1/"),
        ("postgresql://u@h:port/d", "invalid integer value"),
    ],
)
def test_a_wrong_database_is_one_line_without_traceback_or_password(url, part):
    result = subprocess.run(
        [sys.executable, "manage.py", "check_intervals"],
        cwd=env.ROOT,
        capture_output=True,
        text=True,
        env={"DATABASE_URL": url, "PATH": "/usr/bin:/bin", "CDB_ENV_FILE": "/dev/null"},
    )
    assert result.returncode == 1
    assert part in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "secret" not in result.stderr
