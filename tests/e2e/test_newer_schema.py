"""A rolling upgrade: the version before on the database of this one, beside it, and the way back."""

import io
import subprocess
import sys
import tarfile

import pytest
import requests

from cdb.env import ROOT
from tests import programs
from tests.e2e.service import JobClient


def row(number, tag, minor, **values):
    return {
        "global_tag": tag,
        "payload_type": "Later",
        "payload_url": f"{number}/{minor}",
        "checksum": "c",
        "since": [0, minor],
        "until": "open",
    } | values


def use_everything(client, number):
    """Each kind of write once, with lookups of its result, now and in the past."""

    def call(*request):
        status, found = client.call(*request)
        assert status == 200, (request, found)
        return found

    def valid(tag, minor, **options):
        parameters = "".join(f"&{name}={value}" for name, value in options.items())
        return [one[1] for one in client.get(f"payloadiovs/?gtName={tag}&majorIOV=0&minorIOV={minor}{parameters}")]

    tag, clone = f"tag{number}", f"clone{number}"
    client.call("POST", "pt", {"name": "Later"})
    call("POST", "gt", {"name": tag, "status": "unlocked"})
    for minor in (0, 10):
        call("POST", "payload-iovs/insert", row(number, tag, minor))
    payload_list = call("GET", f"gtPayloadLists/{tag}")["Later"]
    iov = call("POST", "piov", {"payload_url": "attached", "checksum": "c", "major_iov": 0, "minor_iov": 20})
    call("PUT", "piov_attach", {"payload_list": payload_list, "piov_id": iov["id"]})
    bulk = {"payload_list": payload_list, "payload_url": "bulk", "major_iov": 0, "minor_iov": 30}
    call("POST", "bulk_piov", [bulk])
    call("POST", f"cloneGlobalTag/{tag}/{clone}", None)
    call("POST", "payload-iovs/insert", row(number, clone, 4, until=[0, 6]))
    assert [valid(clone, minor) for minor in (0, 5, 7, 30)] == [
        [f"{number}/0"],
        [f"{number}/4"],
        [f"{number}/0"],
        ["bulk"],
    ]
    assert valid(tag, 5) == [f"{number}/0"] and valid(clone, 5, rev=1) == [f"{number}/0"]
    call("DELETE", f"deletePayloadIOV/{clone}/Later/0/30", None)
    call("POST", f"global-tags/{clone}/revert", {"revision": 1})
    assert valid(clone, 5) == [f"{number}/0"] and valid(clone, 30) == ["bulk"]
    assert len(client.get(f"globalTag/{clone}")["payload_lists"][0]["payload_iov"]) == 4
    call("PUT", f"gt_change_status/{clone}/frozen", None)
    export = requests.get(f"http://127.0.0.1:{client.port}/api/cdb_rest/global-tags/{clone}/export", timeout=60)
    assert export.status_code == 200 and "attached" in export.text
    call("DELETE", f"deleteGlobalTag/{tag}", None)


def git(*arguments):
    """The output of git in this repository."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def newest_migration():
    return max(file.stem for file in (ROOT / "cdb_rest" / "migrations").glob("[0-9]*.py"))


@pytest.fixture(scope="module")
def previous(newest_migration, new_directory):
    """A directory with the last commit of this branch that lacks the newest migration. Its number decides, not its name."""
    programs.require("git")
    if not (ROOT / ".git").exists() or git("rev-parse", "--is-shallow-repository").strip() != b"false":
        pytest.skip("there is no git history here: clone the repository without --depth")
    beginning = f"cdb_rest/migrations/{newest_migration.split('_')[0]}_"
    changes = git("log", "--first-parent", "-m", "--format=%H^", "--", f"{beginning}*").decode().split()
    # HEAD, if the migration is not committed yet.
    lacking = (one for one in ("HEAD", *changes) if beginning not in _migrations_of(one))
    directory = new_directory()
    with tarfile.open(fileobj=io.BytesIO(git("archive", next(lacking)))) as files:
        files.extractall(directory, filter="data")
    (directory / ".venv").symlink_to(sys.prefix)
    return directory


def is_part(old, new):
    """Whether a response of the newer version has all that the older version's has; it may have more members."""
    if isinstance(old, dict):
        return old.keys() <= new.keys() and all(is_part(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return len(old) == len(new) and all(map(is_part, old, new))
    return old == new


def _migrations_of(commit):
    return git("ls-tree", "--name-only", commit, "cdb_rest/migrations/").decode()


def test_the_version_before_the_newest_migration_runs_beside_this_one(fresh, previous, newest_migration):
    old = fresh("old", root=previous, is_first_start=True).start()
    url = f"postgresql://cdb@/cdb?host={old.data}/postgres/socket"
    clients = {"old": JobClient(old.port)}
    use_everything(clients["old"], 1)
    # It migrates while the earlier version runs.
    new = fresh("new", DATABASE_URL=url).start()
    clients["new"] = JobClient(new.port)
    for number, client in enumerate(clients.values(), 2):
        use_everything(client, number)
    assert clients["new"].call("POST", "gt", {"name": "both", "status": "unlocked"})[0] == 200
    for number in range(20):
        writer = clients["old" if number % 4 < 2 else "new"]
        assert writer.call("POST", "payload-iovs/insert", row(number, "both", number))[0] == 200
        found = [client.get(f"payloadiovs/?gtName=both&majorIOV=0&minorIOV={number}") for client in clients.values()]
        assert found[0] == found[1] and found[0][0][1] == f"{number}/{number}"
        lists = [client.get("globalTag/both")["payload_lists"][0]["payload_iov"] for client in clients.values()]
        assert lists[0] == lists[1] and len(lists[0]) == number + 1
        revisions = {client.get("globalTag/both?light")["revision"] for client in clients.values()}
        assert len(revisions) == 1
    for path in (
        "globalTags",
        "global-tags/both/changes",
        "payloadiovs/?gtName=both&majorIOV=0&minorIOV=9&rev=5",
        "piov",
    ):
        assert is_part(*(client.get(path) for client in clients.values())), path
    for command in ("check_history", "check_intervals"):
        run = new.manage(command)
        assert run.returncode == 0, run.stderr
    assert new.stop() == 0 and old.stop() == 0
    # And the way back.
    assert any(newest_migration in line and "newer version" in line for line in old.start().start_lines)
    use_everything(clients["old"], 4)
    assert old.stop() == 0
