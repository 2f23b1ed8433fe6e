"""The command: its forms of output, its options, and how it behaves on a terminal, in a pipe and in a shell."""

import contextlib
import csv
import io
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Api, new_name

IOV = ["payload_type", "url", "checksum", "size", "since", "until", "revision"]
PIXEL = [
    *("Pixel_Alignment", "Pixel_Alignment/tiny/000000_dcd93f5b.root", "dcd93f5b105faddf594ee445f50aeac9"),
    *("905595", "1,0", "14,2459", "1"),
]
# Commands that print rows (an array in JSON), and those that print an object, with what they print at least.
ROWS = {
    "tags tiny": "tiny",
    "types": "Pixel_Alignment",
    "resolve tiny 5": "Pixel_Alignment",
    "resolve tiny 5 --strict --type Pixel_Alignment --type Cherenkov_Alignment": "Pixel_Alignment",
    "show tiny --type Pixel_Alignment": "Pixel_Alignment",
    "diff tiny EMPTY": "Pixel_Alignment",
    "log tiny --last 1": "seed",
    "uses --prefix Pixel_Alignment/tiny/000000": "tiny",
    "explain tiny 5": "Pixel_Alignment",
}
OBJECTS = {
    "show tiny": "payload_iov_count",
    "coverage tiny": "Pixel_Alignment",
    "whoami": "permissions",
    "config": "server",
    "cache info": "directory",
    "snapshot info SNAPSHOT": "tags",
    "snapshot verify SNAPSHOT": "checksum",
}


@pytest.mark.parametrize("form", ["table", "json", "csv", "plain"])
@pytest.mark.parametrize(("text", "expected"), [*(ROWS | OBJECTS).items()])
def test_every_command_in_every_form(cdb, api, tmp_path, text, expected, form):
    if "SNAPSHOT" in text:
        assert cdb("snapshot", "create", "--tag", "tiny", tmp_path / "SNAPSHOT").code == 0
    empty = api.make_tag([]) if "EMPTY" in text else ""
    line = text.replace("SNAPSHOT", str(tmp_path / "SNAPSHOT")).replace("EMPTY", empty)
    done = cdb(*line.split(), "-o", form)
    assert done.code == 0, done.err
    if form == "json":
        assert isinstance(json.loads(done.out), dict if text in OBJECTS else list)
    elif form == "csv":
        assert len({len(row) for row in csv.reader(io.StringIO(done.out))}) == 1
    assert expected in done.out
    assert "\x1b" not in done.out


def test_a_lookup_in_json_has_moments_of_two_numbers_and_plain_text_is_for_cut(cdb):
    options = ("resolve", "tiny", "5,0", "--type", "Pixel_Alignment")
    [found] = json.loads(cdb(*options, "-o", "json").out)
    assert list(found) == IOV
    assert (found["since"], found["until"], found["size"]) == ([1, 0], [14, 2459], 905595)
    assert cdb(*options).out.splitlines() == ["\t".join(PIXEL)]
    assert list(csv.reader(io.StringIO(cdb(*options, "-o", "csv").out))) == [IOV, PIXEL]


def test_options_may_stand_before_and_after_the_command(cdb, server, tmp_path):
    options = ["--server", server, "-o", "json", "--retry-for", "1", "--fresh"]
    places = ([*options, "show", "tiny"], ["show", *options, "tiny"], ["show", "tiny", *options])
    assert len({cdb(*arguments) for arguments in places}) == 1
    file = tmp_path / "tiny.cdb"
    assert cdb("snapshot", "-o", "json", "create", file, "--tag", "tiny").code == 0
    assert cdb("--snapshot", file, "resolve", "tiny", "5") == cdb("resolve", "tiny", "5", "--snapshot", file)
    assert cdb("resolve", "tiny", "5").out == cdb("--snapshot", file, "resolve", "tiny", "5").out


def test_the_past_and_several_tags(cdb, api):
    base = api.make_tag([("Past_A", "one.root", [1, 0], "open"), ("Past_B", "b.root", [1, 0], "open")])
    patch = api.make_tag([("Past_A", "patch.root", [5, 0], [6, 0])])
    assert cdb("insert", base, "Past_A", "two.root", "--since", "7", "--until", "open").code == 0
    revision = json.loads(cdb("show", base, "-o", "json").out)["revision"]

    def urls(*arguments):
        return [row["url"] for row in json.loads(cdb("resolve", *arguments, "-o", "json").out)]

    assert urls(base, "7") == ["two.root", "b.root"]
    assert urls(f"{base}@{revision - 1}", "7") == ["one.root", "b.root"]
    assert urls(f"{patch},{base}", "5,3") == ["patch.root", "b.root"]
    assert urls(f"{patch},{base}@{revision - 1}", "7") == ["one.root", "b.root"]
    time = json.loads(cdb("log", base, "-o", "json").out)[1]["time"]
    assert urls(f"{base}@{time}", "7") == ["one.root", "b.root"]
    [difference] = json.loads(cdb("diff", f"{base}@{revision - 1}", base, "-o", "json").out)
    assert (difference["a"]["payload_url"], difference["b"]["payload_url"]) == ("one.root", "two.root")


def test_a_tag_from_its_creation_to_its_freezing(cdb, tmp_path):
    tag, payload_type, file = new_name(), new_name("type"), tmp_path / "ped.root"
    file.write_bytes(b"pedestals")
    assert cdb("create", "type", payload_type).code == cdb("create", "tag", tag, "-m", "for a test").code == 0
    insert = ("insert", tag, payload_type, "ped.root", "--until", "open", "--file", file)
    assert "Dry run" in cdb(*insert, "--since", "100", "--dry-run").err
    assert cdb("resolve", tag, "100").out == ""
    done = cdb(*insert, "--since", "100", "--reason", "first")
    assert done.out.split() == [payload_type, "added", "ped.root", "100,0", "open"] and f"{tag}@2" in done.err
    [found] = json.loads(cdb("resolve", tag, "100", "-o", "json").out)
    assert (found["size"], len(found["checksum"])) == (9, 32)
    assert cdb("export", tag, tmp_path / "all.csv").code == 0
    assert cdb("clone", f"{tag}@1", f"{tag}b").code == 0
    done = cdb("import", f"{tag}b", tmp_path / "all.csv", "-o", "json")
    assert json.loads(done.out)["inserted"] == 1
    assert cdb("diff", tag, f"{tag}b").out == ""
    assert cdb("lock", tag).code == cdb("unlock", tag).code == cdb("freeze", tag, "-m", "done").code == 0
    actions = [row["action"] for row in json.loads(cdb("log", tag, "-o", "json").out)]
    assert actions == ["status", "status", "status", "insert", "create"]


def test_a_configuration_with_named_servers_and_the_cache(cdb, server, tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'default = "here"\n[servers.here]\nurl = "{server}"\n')
    monkeypatch.setenv("CDB_SERVER", "")
    assert cdb("resolve", "tiny", "5").code == 0
    found = json.loads(cdb("--server", "here", "config", "-o", "json").out)
    assert (found["server"], found["token"]) == (server, None)
    found = json.loads(cdb("cache", "info", "-o", "json").out)
    with sqlite3.connect(found["directory"] + "/lookups.sqlite3") as lookups:
        count = "SELECT count(*) FROM stretch"
        assert found["bytes"] > 0 and lookups.execute(count).fetchone()[0] == 1
        assert cdb("cache", "clear").code == 0
        assert lookups.execute(count).fetchone()[0] == 0


def on_terminal(server, *arguments, **environment):
    """The exit code of a command whose standard files are a terminal of 200 columns, and what it printed there."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "cdb_client", *map(str, arguments)]
    variables = os.environ | {"TERM": "xterm-256color", "COLUMNS": "200", "CDB_SERVER": server} | environment
    process = subprocess.Popen(command, env=variables, stdin=its, stdout=its, stderr=its)
    os.close(its)
    printed = b""
    # Linux reports the end as an error.
    with contextlib.suppress(OSError):
        while data := os.read(ours, 65536):
            printed += data
    os.close(ours)
    return process.wait(30), printed.decode()


COLOUR = re.compile(r"\x1b\[[\d;]*3\d")


def test_a_terminal_gets_a_table_in_colours(server, api):
    tag = api.make_tag([])
    # Texts of others do not control the terminal.
    api("PUT", f"gt_change_status/{tag}/locked", {"comment": "red \x1b[31m [bold]text[/bold]"})
    code, printed = on_terminal(server, "log", tag)
    assert code == 0 and "─" in printed and COLOUR.search(printed)
    code, printed = on_terminal(server, "log", tag, NO_COLOR="1")
    assert code == 0 and "─" in printed and not COLOUR.search(printed) and "[bold]text[/bold]" in printed


def test_files_are_downloaded_with_a_progress_bar_on_a_terminal_only(server, api, start, tmp_path, monkeypatch):
    rows = [(f"Files_{number}", f"{number}.root", [1, 0], "open", {"size": number}) for number in range(20)]
    for number in range(20):
        (tmp_path / f"{number}.root").write_bytes(b"x" * number)
    monkeypatch.setenv("CDB_PAYLOAD_BASE_URL", str(tmp_path))
    get = ("get", api.make_tag(rows), "5", "--to")
    code, printed = on_terminal(server, *get, tmp_path / "a")
    assert code == 0 and "payload files" in printed
    out, err = start(*get, tmp_path / "b").communicate()
    assert err == "" and {Path(path).stat().st_size for path in out.splitlines()} == set(range(20))


@pytest.mark.parametrize("form", ["plain", "json", "table", "csv"])
def test_a_pipe_that_is_closed_is_no_error(server, form):
    command = f"{sys.executable} -m cdb_client types -o {form} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], env=os.environ | {"CDB_SERVER": server}, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_is_one_line(server):
    command = [sys.executable, "-m", "cdb_client", "tags"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, env=os.environ | {"CDB_SERVER": server}, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and b"No space left" in done.stderr


def test_bash_completes_commands_and_options(tmp_path):
    (tmp_path / "cdb").write_text(f'#!/bin/sh\nexec {sys.executable} -m cdb_client "$@"\n')
    (tmp_path / "cdb").chmod(0o755)
    script = """
    eval "$(_CDB_COMPLETE=bash_source cdb)"
    complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _cdb_completion cdb; echo "${COMPREPLY[@]}"; }
    complete_line cdb reso
    complete_line cdb tags --retry
    complete_line cdb snapshot ver
    """
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines(), done.stderr) == (["resolve", "--retry-for", "verify"], "")


def test_a_snapshot_is_served_until_ctrl_c(cdb, api, start, tmp_path):
    assert cdb("snapshot", "create", "--tag", "tiny", tmp_path / "tiny.cdb").code == 0
    process = start("snapshot", "serve", tmp_path / "tiny.cdb", "--port", "0")
    address = re.search("http://[^;]*", process.stderr.readline())[0]
    lookup = {"gtName": "tiny", "majorIOV": 5, "minorIOV": 0}
    assert Api(address)("GET", "payloadiovs/", **lookup) == api("GET", "payloadiovs/", **lookup)
    process.send_signal(signal.SIGINT)
    assert (process.wait(30), process.stdout.read(), process.stderr.read()) == (130, "", "cdb: interrupted\n")
