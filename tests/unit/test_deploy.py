"""The templates of deploy/: every placeholder is explained and filled in."""

import re

import pytest

from cdb import env
from cdb.serving import nginx_configuration, pgbouncer, pools, postgresql
from cdb.serving.templates import COMMENT, DEPLOY, PLACEHOLDER

VALUES = env.read()
TEMPLATES = ["nginx.conf", "nginx-errors.conf", "pgbouncer.ini", "postgresql.conf"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_placeholder_is_explained_at_the_top(name):
    lines = (DEPLOY / name).read_text().splitlines()
    used = {found for line in lines if not COMMENT.match(line) for found in PLACEHOLDER.findall(line)}
    explained = {found for line in lines if COMMENT.match(line) for found in PLACEHOLDER.findall(line)}
    assert used and used == explained


def test_every_placeholder_is_filled_in():
    for text in (nginx_configuration.configuration(), pgbouncer.configuration()):
        assert not any(PLACEHOLDER.search(line) for line in text.splitlines() if not COMMENT.match(line))


@pytest.mark.parametrize(
    ("name", "of"),
    [(name, "memory") for name in ("SHARED_BUFFERS", "EFFECTIVE_CACHE_SIZE", "WORK_MEM", "MAINTENANCE_WORK_MEM")]
    + [(name, "disk") for name in ("MAX_WAL", "MIN_WAL", "SLOT_WAL")],
)
def test_the_tables_of_sizes_are_what_is_computed(name, of):
    text = (DEPLOY / "postgresql.conf").read_text()
    gigabytes = [int(size) for size in re.search(rf"#   {of} +(.*) rule", text)[1].replace("GB", "").split()]
    row = re.search(rf"@{name}@ +((?:\d+MB +)+)", text)[1].split()
    sizes = {"memory": 4096, "disk": 100_000}
    assert row == [postgresql.sizes(*(sizes | {of: size * 1024}).values())[name] for size in gigabytes]


def test_each_pool_has_its_share_of_each_replica(monkeypatch):
    urls = "postgresql://reader:it%27s@one:5433/conditions, postgres://two/conditions?sslmode=prefer"
    monkeypatch.setattr(env, "read", lambda: VALUES | {"DATABASE_REPLICA_URLS": urls})
    lines = [line for line in pgbouncer.configuration().splitlines() if re.match("cdb_.*_replica_", line)]
    assert [line.split(" = ")[0] for line in lines] == [
        f"cdb_{pool}_replica_{number}" for number in (1, 2) for pool in ("lookups", "others")
    ]
    assert "host='one' port='5433' user='reader' password='it''s' dbname='conditions'" in lines[0]
    assert pgbouncer.replica_urls(pools.pools()["lookups"]) == [
        "postgresql://reader:it%27s@one:5433/conditions?application_name=cdb-lookups",
        "postgres://two/conditions?sslmode=prefer&application_name=cdb-lookups",
    ]
    assert [url.split("?")[0].split("/")[-1] for url in pgbouncer.replica_urls(pools.pools()["others"])] == [
        "cdb_others_replica_1",
        "cdb_others_replica_2",
    ]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://x", "DATABASE_REPLICA_URLS must look like"),
        ("postgresql://x/y?sslmode=require", "same TLS parameters"),
        ("postgresql://a,b/y", "one server in each URL"),
        ("postgresql:///y?host=/a,/b", "one server in each URL"),
        ("postgresql:///y?hostaddr=10.0.0.1,10.0.0.2", "one server in each URL"),
    ],
)
def test_unusable_replicas_are_named(monkeypatch, url, reason):
    monkeypatch.setattr(env, "read", lambda: VALUES | {"DATABASE_REPLICA_URLS": url})
    with pytest.raises(env.ConfigurationError, match=reason):
        pgbouncer.configuration()
