"""`make cache-test`: no cache in front of two hosts answers with an old state, and what never changes does not reach them."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cdb.env import ROOT
from tests.programs import needs

POSTGRES = "/usr/lib/postgresql/15/bin/postgres"


@needs(POSTGRES, "patroni", "etcd", "haproxy", "nginx", "squid", "varnishd", "wrk")
def test_caches_are_never_stale():
    # The accounts of PostgreSQL and Squid cannot read the directories of pytest.
    directory = Path(tempfile.mkdtemp(prefix="cdb-caches-"))
    directory.chmod(0o711)
    try:
        played = subprocess.run(
            [sys.executable, "-m", "loadtests.caches", "--quick"],
            cwd=ROOT,
            env=os.environ | {"CDB_DATA_DIR": str(directory)},
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert played.returncode == 0, played.stdout + played.stderr
        tables = {}
        for name in ("stale", "load"):
            with (directory / "caches" / name / "figures.csv").open(newline="") as file:
                tables[name] = list(csv.DictReader(file))
        assert [row["fault"] for row in tables["stale"]] == ["none", "primary-power"]
        for row in tables["stale"]:
            # Times are not tested, because other tests run at the same time.
            assert (row["stale"], row["wrong"], row["lost"]) == ("0", "0", "0"), played.stdout
            assert int(row["answered"]) > 100, row
        load = {(row["kind"], row["through"]): int(row["hosts"]) / int(row["requests"]) for row in tables["load"]}
        for place in ("site Squid", "Varnish"):
            assert all(load[kind, place] < 0.01 for kind in ("frozen", "rev=", "pinned")), load
            # Each use asks a host. (wrk ends before its last responses.)
            assert all(load[kind, place] > 0.9 for kind in ("unlocked", "locked")), load
    finally:
        shutil.rmtree(directory, ignore_errors=True)
