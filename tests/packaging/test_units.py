"""The files for a host that stays: units of systemd, and the configuration of logrotate."""

import re
import subprocess

from cdb.env import ROOT
from tests.programs import needs

UNITS = sorted((ROOT / "deploy/systemd").iterdir())


@needs("systemd-analyze")
def test_systemd_accepts_the_units(tmp_path):
    for unit in UNITS:
        # This machine has no installation of cdb.
        text = re.sub(r"(?m)^(ExecStart|ExecReload)=\S+", r"\1=/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text.replace("User=cdb", "User=daemon"))
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, sorted(tmp_path.iterdir()))]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")


@needs("logrotate")
def test_logrotate_accepts_the_file_and_leaves_no_log_out(tmp_path):
    text = (ROOT / "deploy/logrotate/cdb").read_text()
    (tmp_path / "cdb").write_text(text.replace("/srv/cdb/var", str(tmp_path)))
    (tmp_path / "cdb").chmod(0o644)
    (tmp_path / "serve").mkdir()
    (tmp_path / "serve/granian.log").write_text("line\n")
    command = ["logrotate", "--force", "--state", str(tmp_path / "state"), str(tmp_path / "cdb")]
    rotated = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert rotated.returncode == 0 and "error" not in rotated.stderr, rotated.stderr
    assert (tmp_path / "serve/granian.log").read_text() == "" and (tmp_path / "serve/granian.log.1.gz").exists()
    logs = re.findall(r"stdout_logfile = @DIRECTORY@/(\S+)", (ROOT / "deploy/supervisord.conf").read_text())
    assert all(f"/srv/cdb/var/serve/{name}" in text for name in logs)
