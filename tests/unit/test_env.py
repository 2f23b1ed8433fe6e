"""Settings from environment variables."""

import os
from ipaddress import ip_network

import pytest

from cdb import env, mail
from cdb.env import ConfigurationError


@pytest.fixture
def read(monkeypatch):
    # What a file says is put into it, too.
    monkeypatch.setattr(os, "environ", os.environ.copy())

    def read(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return env.read.__wrapped__()

    return read


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "abc"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("CDB_IOV_MODE", "both"),
        ("CDB_MAX_BODY_BYTES", "-1"),
        ("CDB_THREADS", "0"),
        ("DEBUG", "perhaps"),
        ("CDB_METRICS_NETWORKS", "10.0.0.1/8"),
        ("CDB_LOOKUP_TIMEOUT_SECONDS", "soon"),
        ("CDB_NAME_PATTERN", "(a"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_the_variable(read, name, value):
    with pytest.raises(ConfigurationError) as caught:
        read(**{name: value})
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("CDB_COMPILED_BYTES", "6GiB", 6 * 2**30),
        ("CDB_MAX_BODY_BYTES", "20 MB", 20_000_000),
        ("CDB_LOOKUP_TIMEOUT_SECONDS", "2min", 120),
        ("CDB_QUEUE_TIMEOUT_SECONDS", "7", 7),
        ("CDB_TLS", "on", True),
        ("CDB_METRICS_NETWORKS", "10.0.0.0/8, ::1", [ip_network("10.0.0.0/8"), ip_network("::1")]),
        ("CDB_ALLOWED_HOSTS", "a.example, b.example,", ["a.example", "b.example"]),
    ],
)
def test_a_value_has_its_type_and_may_have_a_unit(read, name, text, value):
    assert read(**{name: text})[name] == value


def test_an_unknown_variable_is_told_with_the_nearest_name(read):
    read(CDB_LOKUP_TIMEOUT_SECONDS="3", CDB_QQQ="1")
    assert env.unknown() == [
        "CDB_LOKUP_TIMEOUT_SECONDS is no setting; did you mean CDB_LOOKUP_TIMEOUT_SECONDS?",
        "CDB_QQQ is no setting",
    ]


def test_a_file_gives_what_the_environment_does_not(read, tmp_path, monkeypatch):
    file = tmp_path / "settings"
    file.write_text("PORT=9000\nCDB_THREADS=7\nCDB_WORKERS=\n")
    monkeypatch.setenv("CDB_WORKERS", "3")
    values = read(CDB_ENV_FILE=str(file), PORT="", CDB_THREADS="2")
    assert (values["PORT"], values["CDB_THREADS"], values["CDB_WORKERS"]) == (9000, 2, 3)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://host", ("host", 25, "", "", False, False)),
        ("smtp+tls://me:a%40b@host", ("host", 587, "me", "a@b", True, False)),
        ("smtps://me:word@host:4650", ("host", 4650, "me", "word", False, True)),
        *(
            (url, None)
            for url in ("host", "https://me:word@host", "smtp://me:word@host/x", "smtp://me:word@host:99999", "smtp://")
        ),
    ],
)
def test_the_mail_server(read, monkeypatch, url, expected):
    values = read(CDB_MAIL_URL=url, CDB_MAIL_FROM="cdb@host", CDB_PUBLIC_URL="https://host")
    monkeypatch.setattr(env, "read", lambda: values)
    if expected is None:
        with pytest.raises(ConfigurationError, match="CDB_MAIL_URL") as caught:
            mail.settings()
        assert "me:word" not in str(caught.value)
    else:
        names = ("EMAIL_HOST", "EMAIL_PORT", "EMAIL_HOST_USER", "EMAIL_HOST_PASSWORD", "EMAIL_USE_TLS", "EMAIL_USE_SSL")
        assert tuple(mail.settings()[name] for name in names) == expected
