"""The commands of the tutorial print what it shows."""

import json
import re
import subprocess

import pytest

from cdb.env import ROOT
from tests.e2e.service import Service
from tests.programs import needs

pytestmark = needs("curl")
TEXT = (ROOT / "docs" / "tutorial.md").read_text()
# A command with its output. The commands without one start the service and set its address.
STEPS = re.findall(r"```sh\n((?:(?!```).)*)```\n\n```(json|text)\n(.*?)```", TEXT, re.DOTALL)
CHANGING = {"id", "created", "updated", "payload_list"}


@pytest.fixture(scope="module")
def service(new_directory):
    with Service(new_directory() / "data").running() as running:
        yield running


def without_ids_and_times(value):
    if isinstance(value, dict):
        return {name: without_ids_and_times(one) for name, one in value.items() if name not in CHANGING}
    return [without_ids_and_times(one) for one in value] if isinstance(value, list) else value


def test_every_command_prints_what_the_tutorial_shows(service):
    assert len(STEPS) + 2 == TEXT.count("```sh\n") and "export CDB_URL=http://127.0.0.1:8000\n" in TEXT
    for command, kind, shown in STEPS:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            env=service.environment | {"CDB_URL": f"http://127.0.0.1:{service.port}"}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
        if kind == "json":
            printed, expected = (without_ids_and_times(json.loads(text)) for text in (done.stdout, shown))
        else:
            printed, expected = ([line.rstrip() for line in text.splitlines()] for text in (done.stdout, shown))
        assert printed == expected, command
