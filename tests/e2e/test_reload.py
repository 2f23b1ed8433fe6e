"""`make reload` under load: new settings, and code that cannot be loaded."""

import shutil
import subprocess
import sys
import threading
import time

import psutil
import pytest

from cdb.env import ROOT
from tests.e2e.clients import ask
from tests.e2e.service import JobClient, Service
from tests.e2e.test_nginx_cache import freeze_copy
from tests.waiting import wait_until

# Longer than a reload takes.
SUSPENDED_SECONDS = 25
LOOKUP = "payloadiovs/?gtName=tiny&majorIOV={}&minorIOV=0"


@pytest.fixture
def copied(new_directory, needs_packages):
    """A service that runs a copy of the code, which a test may break."""
    directory = new_directory()
    directory.chmod(0o755)
    ignored = shutil.ignore_patterns(".git", ".venv", ".tools", "var", "tests", "loadtests", "docs", "__pycache__")
    shutil.copytree(ROOT, directory / "project", ignore=ignored)
    (directory / "project" / ".venv").symlink_to(ROOT / ".venv")
    # A service is ready when one of its processes is. Others, which still load the code, would end if it was broken then.
    with (directory / "project" / "cdb" / "wsgi.py").open("a") as code:
        code.write(f"open(f'{directory}/loaded-{{os.getpid()}}', 'w').close()\n")
    file = directory / "settings"
    file.write_text("CDB_UNLOCKED_MAX_AGE_SECONDS=0\n")
    # On a busy machine, new processes may need longer than the usual limit until they answer.
    service = Service(
        directory / "data", "serve", root=directory / "project", CDB_QUEUE_TIMEOUT_SECONDS="60", CDB_WORKERS="2"
    )
    service.environment["CDB_ENV_FILE"] = str(file)
    with service.running():
        wait_until(lambda: len(list(directory.glob("loaded-*"))) == 4)
        yield service, directory / "project", file


def reload(service, project):
    return subprocess.run(
        [sys.executable, "-m", "cdb.serving.reload"],
        cwd=project,
        env=service.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


class Readers:
    """Lookups, small reads and writes from several threads inside the block; `failed` are those that were not served."""

    def __init__(self, service):
        self._service = service
        self._over = threading.Event()
        self.failed, self.served = [], 0

    def __enter__(self):
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(4)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number):
        client, turn = JobClient(self._service.port), 0
        # About twelve requests in each fifth of a second. More would take the processors that the new processes need.
        while not self._over.wait(0.2):
            turn += 1
            calls = (LOOKUP.format(turn), ...), ("gt?page=1", ...), ("pt", {"name": f"type{number}x{turn}"})
            for path, body in calls:
                try:
                    status, found = client.call("GET" if body is ... else "POST", path, body)
                except OSError as error:
                    status, found = None, repr(error)
                self.served += 1
                if status != 200:
                    self.failed.append((path, status, found))


def test_a_reload_takes_new_settings_and_broken_code_changes_nothing(copied):
    service, project, file = copied
    with Readers(service) as readers:
        broken = project / "cdb_rest" / "lookup" / "shared_reads.py"
        whole = broken.read_text()
        broken.write_text(whole + "\ndef broken(:\n")
        refused = reload(service, project)
        assert refused.returncode == 1 and refused.stdout == "" and refused.stderr.count("\n") == 1
        assert "not reloaded, the old code goes on" in refused.stderr and "SyntaxError" in refused.stderr
        broken.write_text(whole)
        file.write_text("CDB_PORT_OF_NOTHING=1\nCDB_UNLOCKED_MAX_AGE_SECONDS=x\n")
        refused = reload(service, project)
        assert refused.returncode == 1 and "CDB_UNLOCKED_MAX_AGE_SECONDS" in refused.stderr
        file.write_text("CDB_UNLOCKED_MAX_AGE_SECONDS=7\n")
        done = reload(service, project)
        assert done.returncode == 0 and done.stdout.startswith("Reloaded: the new code answers"), done.stderr
    assert readers.failed == [] and readers.served > 50


def test_reads_are_closed_when_a_reload_reports_success(new_directory, needs_packages):
    directory = new_directory()
    directory.chmod(0o755)
    file = directory / "settings"
    file.write_text("CDB_OPEN_WRITES=true\n")
    service = Service(directory / "data", "serve", CDB_OPEN_WRITES="", CDB_ENV_FILE=str(file))
    with service.running():
        frozen = freeze_copy(service)
        assert [ask(service, "GET", frozen)[1]["CDB-Cache"] for _ in range(4)][-1] == "HIT"
        [*_, old] = [process for process in service.programs("nginx: worker") if is_accepting(process)]
        # A busy worker takes notice of the signal later.
        old.suspend()
        timer = threading.Timer(SUSPENDED_SECONDS, old.resume)
        timer.start()
        file.write_text("CDB_ANONYMOUS_READS=false\n")
        begin = time.monotonic()
        done = reload(service, ROOT)
        assert done.returncode == 0, done.stderr
        assert not is_accepting(old)
        assert time.monotonic() - begin > SUSPENDED_SECONDS
        assert {ask(service, "GET", frozen)[0] for _ in range(50)} == {401}
        timer.join()


def is_accepting(process):
    try:
        title = " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False
    return "worker process" in title and "shutting down" not in title


def test_a_reload_without_a_service_is_one_line(fresh, needs_packages):
    service = fresh(command="serve")
    refused = reload(service, ROOT)
    assert refused.returncode == 1 and refused.stderr.startswith("cdb: no make serve runs with ")
    assert refused.stderr.count("\n") == 1
