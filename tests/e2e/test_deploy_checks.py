"""`manage.py check --deploy`: a production configuration passes, and each setting that leaves the service open is reported."""

import os
import subprocess
import sys

import pytest
from django.conf import settings as configuration

from cdb.env import ROOT

GOOD_KEY = "0123456789" * 6


def manage(directory, *arguments, **variables):
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.defpath, "CDB_ENV_FILE": os.devnull, "CDB_DATA_DIR": str(directory)} | variables,
    )


def deploy_check(directory, **variables):
    return manage(directory, "check", "--deploy", "--fail-level", "WARNING", **variables)


def test_production_by_https_stands_every_check(tmp_path):
    local = "postgresql://u:p@127.0.0.1/cdb"
    found = deploy_check(tmp_path, CDB_TLS="1", CDB_ALLOWED_HOSTS="cdb.example.org", DATABASE_URL=local)
    assert (found.returncode, found.stdout) == (0, "System check identified no issues (2 silenced).\n"), found.stderr
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600
    assert configuration.SILENCED_SYSTEM_CHECKS == ["security.W005", "security.W021"]


@pytest.mark.parametrize(
    ("variables", "ids"),
    [
        (
            {"CDB_TLS": "", "CDB_ALLOWED_HOSTS": "*", "DATABASE_URL": "postgresql://u:p@db.example.org/cdb"},
            {"security.W004", "security.W008", "security.W012", "security.W016", "cdb.W001", "cdb.W003"},
        ),
        (
            {"DEBUG": "1", "DATABASE_URL": "postgresql://u:p@db.example.org/cdb?sslmode=prefer"},
            {"security.W018", "cdb.W003"},
        ),
        ({"DATABASE_URL": "postgresql://u:p@db.example.org/cdb?sslmode=verify-full"}, set()),
        ({"DATABASE_URL": "postgresql://u:p@localhost/cdb?hostaddr=192.0.2.1"}, {"cdb.W003"}),
    ],
)
def test_every_insecure_setting_is_named(tmp_path, variables, ids):
    found = deploy_check(tmp_path, **{"CDB_TLS": "1"} | variables)
    assert {line.split("(")[1].split(")")[0] for line in found.stderr.splitlines() if line.startswith("?: (")} == ids
    assert (found.returncode == 1) == bool(ids)
    assert "Traceback" not in found.stderr and "u:p" not in found.stderr


def test_files_with_secrets_that_others_can_read_are_named(tmp_path):
    file = tmp_path / "settings"
    file.write_text(f"CDB_SECRET_KEY={GOOD_KEY}\n")
    file.chmod(0o640)
    found = deploy_check(tmp_path, CDB_TLS="1", CDB_ENV_FILE=str(file))
    assert found.returncode == 1 and f"chmod 600 {file}" in found.stderr and GOOD_KEY not in found.stderr
    for line in ("export CDB_SECRET_KEY=" + GOOD_KEY, "DATABASE_REPLICA_URLS=postgresql://u:p@127.0.0.1/cdb"):
        file.write_text(f"{line}\n")
        assert f"chmod 600 {file}" in deploy_check(tmp_path, CDB_TLS="1", CDB_ENV_FILE=str(file)).stderr
    # A file without secrets may be readable for all.
    file.write_text("CDB_SECRET_KEY=\nPORT=8000\n")
    file.chmod(0o644)
    assert deploy_check(tmp_path, CDB_TLS="1", CDB_ENV_FILE=str(file)).returncode == 0
    (tmp_path / "secret_key").chmod(0o604)
    assert "secret_key has secrets" in deploy_check(tmp_path, CDB_TLS="1").stderr


CLOSED_READS = {"CDB_ANONYMOUS_READS": "false"}


@pytest.mark.parametrize(
    ("command", "variables", "names"),
    [
        ("run", CLOSED_READS, ["CDB_OPEN_WRITES must be false"]),
        ("check", {"DEBUG": "1", "CDB_ALLOWED_HOSTS": "*"}, ["CDB_ALLOWED_HOSTS must name only"]),
        ("check", {"DEBUG": "1", "CDB_ALLOWED_HOSTS": "localhost,.example.org"}, ["CDB_ALLOWED_HOSTS must name only"]),
        (
            "serve",
            CLOSED_READS | {"CDB_OPEN_WRITES": "1", "DEBUG": "1", "CDB_ALLOWED_HOSTS": "cdb.example.org"},
            ["CDB_OPEN_WRITES must be false", "DEBUG must be off", "CDB_ALLOWED_HOSTS must name only"],
        ),
    ],
)
def test_settings_that_contradict_each_other_prevent_the_start(tmp_path, command, variables, names):
    found = manage(tmp_path, command, **variables)
    assert found.returncode == 1 and len(found.stderr.splitlines()) == 1
    assert all(name in found.stderr for name in names), found.stderr
    assert list(tmp_path.iterdir()) == []
