"""manage.py check_coverage"""

from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from cdb_rest.rules.moment import OPEN

pytestmark = pytest.mark.django_db(transaction=True)


def check(*arguments):
    output = StringIO()
    try:
        call_command("check_coverage", *arguments, stdout=output)
    except CommandError as error:
        return output.getvalue(), str(error)
    return output.getvalue(), None


@pytest.fixture
def tag(build):
    made = build.tag()
    gain = build.list(made, "Gain")
    build.iov(gain, (1, 0), (5, 0))
    build.iov(gain, (7, 0))
    build.iov(build.list(made, "Noise"), (0, 0))


def test_gaps_are_printed_and_fail(tag):
    printed, error = check("tag")
    assert [line.split() for line in printed.splitlines()[1:]] == [
        ["Gain", "99.9999%", "(0,", "0)", "(1,", "0)"],
        ["Gain", "99.9999%", "(5,", "0)", "(7,", "0)"],
    ]
    assert "1 of 2 payload types have gaps" in error
    printed, error = check("tag", "--since", "1,0", "--until", "5,0")
    assert error is None and printed.startswith("No gaps in 2 payload types of tag")


def test_the_past_is_checked(api, build):
    api.post("gt", {"name": "new", "status": "unlocked"}).ok()
    api.post("pt", {"name": "Gain"}).ok()
    row = {"global_tag": "new", "payload_type": "Gain", "payload_url": "a", "checksum": "c", "until": "open"}
    api.post("payload-iovs/insert", row | {"since": [3, 0]}).ok()
    api.post("payload-iovs/insert", row | {"since": [0, 0]}).ok()
    assert check("new")[1] is None
    assert "1 of 1 payload types have gaps" in check("new", "--rev", "2")[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["none"],
        ["tag", "--since", "1"],
        ["tag", "--since", f"1,{OPEN + 1}"],
        ["tag", "--since", "2,0", "--until", "2,0"],
        ["tag", "--require", "/none"],
        ["tag", "--rev", "99"],
    ],
)
def test_faults_are_one_line(tag, arguments):
    _, error = check(*arguments)
    assert error and "\n" not in error


def test_bases_fill_the_gaps_of_a_tag(tag, build):
    build.iov(build.list(build.tag("base"), "Gain"), (5, 0), (6, 0))
    printed, _ = check("tag", "--since", "1,0", "--base", "base")
    assert printed.splitlines()[1].split()[2:] == ["(6,", "0)", "(7,", "0)"]
    assert check("tag", "--since", "1,0", "--until", "6,0", "--base", "base")[1] is None
