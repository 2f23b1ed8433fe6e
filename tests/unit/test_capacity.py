"""manage.py capacity: the laws of its estimate, and that its numbers come from the measurements."""

import json
import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from cdb.env import ROOT
from cdb.management.capacity import SERVICE_SECONDS, Capacity
from cdb.management.queueing import COMFORTABLE, erlang_c
from cdb.processes.machine import memory_megabytes
from cdb.serving import nginx_configuration, pgbouncer, postgresql
from cdb.serving.pools import REQUESTS_OF_A_THREAD, connections, cores_here, pools

sizes = st.tuples(
    st.integers(1, 256), st.integers(512, 2**20), st.floats(0.0001, 10), st.integers(0, 200_000), st.floats(0, 600)
)


@given(sizes)
def test_nothing_answers_more_than_any_resource_allows_nor_more_than_is_asked(size):
    found = Capacity(*size)
    limits = [bound.answers_per_second for bound in found.bounds()]
    assert limits == sorted(limits) and found.most_per_second == limits[0]
    lookups = pools(found.cores)["lookups"]
    assert found.most_per_second <= min(found.cores, lookups.workers, lookups.connections) / found.service_seconds
    assert found.queue.answers_per_second <= min(found.queue.arrivals_per_second, found.most_per_second)


@given(sizes)
def test_no_answer_takes_less_than_its_service_time_nor_longer_than_everybody_before_it(size):
    found = Capacity(*size)
    servers = round(found.most_per_second * found.service_seconds)
    assert found.queue.response_seconds >= found.service_seconds
    assert found.queue.response_seconds <= found.service_seconds * (1 + found.users / servers) * 1.000001


@given(sizes, st.integers(1, 64))
def test_more_of_a_machine_is_never_worse(size, more):
    cores, memory, service, users, think = size
    found = Capacity(*size)
    for larger in (
        Capacity(cores + more, memory * 2, service, users, think),
        Capacity(cores, memory * 2, service, users, think),
    ):
        assert larger.most_per_second >= found.most_per_second or larger.connections_that_fit < connections(
            larger.cores
        )
        assert larger.queue.most_users >= found.queue.most_users or larger.connections_that_fit < connections(
            larger.cores
        )
    slower = Capacity(cores, memory, service * 2, users, think)
    assert slower.most_per_second <= found.most_per_second
    # A think time is what a server rests.
    assert Capacity(cores, memory, service, users, think + 1).queue.utilisation <= found.queue.utilisation


@given(st.integers(1, 200), st.floats(0.001, 0.999))
def test_waiting_for_one_of_several_servers_is_as_published(servers, share):
    load = servers * share
    found = erlang_c(servers, load)
    assert 0 <= found <= 1
    assert erlang_c(1, share) == pytest.approx(share)
    # The more servers there are for the same share, the fewer find them all busy.
    assert erlang_c(servers + 1, (servers + 1) * share) <= found + 1e-12
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert erlang_c(10, 8.0) == pytest.approx(0.4092, abs=1e-4)


def test_one_server_is_the_textbook_queue(monkeypatch):
    monkeypatch.setattr("cdb.serving.pools.env.read", lambda: {"CDB_WORKERS": 1, "CDB_THREADS": 1})
    found = Capacity(1, 4096, 0.010, 5_000, 99.99)
    assert found.queue.arrivals_per_second == pytest.approx(50) and found.queue.utilisation == pytest.approx(0.5)
    assert found.queue.response_seconds == pytest.approx(0.010 / (1 - 0.5))


def test_beyond_saturation_users_wait_as_the_response_time_law_says():
    found = Capacity(2, 4096, 0.010, 10_000, 10)
    assert found.queue.utilisation > 1 and found.verdict.startswith("does not fit")
    assert found.queue.response_seconds == pytest.approx(10_000 / 200 - 10)
    assert "504" in found.verdict
    assert Capacity(2, 4096, 0.010, 100, 10).verdict == "fits"
    assert Capacity(2, 4096, 0.010, found.queue.most_users, 10).queue.utilisation == pytest.approx(
        COMFORTABLE, abs=0.001
    )


@pytest.mark.parametrize(
    ("variables", "memory", "first"),
    [
        ({"CDB_WORKERS": 0, "CDB_THREADS": 4}, 65536, "cores"),
        ({"CDB_WORKERS": 3, "CDB_THREADS": 4}, 65536, "gunicorn's processes"),
        ({"CDB_WORKERS": 500, "CDB_THREADS": 8}, 256, "memory for PostgreSQL's connections"),
    ],
)
def test_the_first_limit_depends_on_the_settings(monkeypatch, variables, memory, first):
    monkeypatch.setattr("cdb.serving.pools.env.read", lambda: variables)
    assert Capacity(64, memory, 0.005, 1, 1).bounds()[0].resource == first


def hops(found):
    name, rows = "", {}
    for hop in found.hops():
        name = hop.name or name
        rows[name, hop.what] = hop.count
    return rows


def test_the_hops_are_those_of_the_files_that_serve_writes():
    rows = hops(Capacity(cores_here(), memory_megabytes(), 0.005, 1, 1))
    conf, ini = nginx_configuration.configuration(), pgbouncer.configuration()
    assert f"worker_processes {rows['clients -> nginx', 'processes']};" in conf
    assert f"limit_conn lookups_in_progress {rows['clients -> nginx', 'lookups at once']};" in conf
    assert rows["clients -> nginx", "other requests at once"] == REQUESTS_OF_A_THREAD * pools()["others"].connections
    waiting = re.findall(r"lookups\.sock\S+ max_fails=0 max_conns=(\d+)", conf)
    assert sum(map(int, waiting)) == rows["nginx -> gunicorn (lookups)", "requests at once, most waiting"]
    assert rows["PgBouncer -> PostgreSQL (cdb_others)", "connections"] == pools()["others"].connections
    # That for lookups is for a supervisor of an earlier version, which is reloaded.
    for pool in pools().values():
        assert re.search(rf"^{pool.database} = .* pool_size={pool.connections} ", ini, re.MULTILINE)
    assert f"max_client_conn = {rows['gunicorn (others) -> PgBouncer', 'connections at most']}" in ini
    assert str(rows["PostgreSQL", "max_connections"]) == postgresql.options()["max_connections"]


def test_the_service_time_is_the_one_that_was_measured():
    section = (ROOT / "docs/results.md").read_text().split("### Serving as in production")[1]
    rate = re.search(r"^\| lookups at random moments, .*? \| (\d+) \|", section, re.MULTILINE)[1]
    assert pytest.approx(2 / int(rate)) == SERVICE_SECONDS


def run(*arguments):
    output = StringIO()
    call_command("capacity", *arguments, stdout=output)
    return output.getvalue()


def test_the_table_and_the_document_say_the_same():
    arguments = ["--cores", "8", "--memory", "32", "--service-time-ms", "4", "--users", "20000", "--think-time", "30"]
    table, document = run(*arguments), json.loads(run(*arguments, "--json"))
    assert (document["cores"], document["memory_megabytes"], document["service_seconds"]) == (8, 32768, 0.004)
    assert document["most_per_second"] == 2000 and document["bounds"][0]["resource"] == "cores"
    for text in (
        "2,000",
        "First bottleneck: cores",
        f"Verdict: {document['verdict']}.",
        "max_connections",
        "12,000",
    ):
        assert text in table


@pytest.mark.parametrize(
    ("option", "text", "allowed"),
    [
        ("--cores", "0", "at least 1"),
        ("--cores", "two", "a whole number"),
        ("--memory", "0", "above 0 GiB"),
        ("--service-time-ms", "0", "above 0 ms"),
        ("--users", "-1", "at least 0"),
        ("--think-time", "-1", "at least 0 s"),
        ("--memory", "nan", "a number of GiB, or a number with one of the units B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"),
        ("--memory", "inf", "a number of GiB, or a number with one of the units B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"),
        ("--think-time", "1e999", "a number of seconds, or a number with one of the units ms, s, min, h, d"),
    ],
)
def test_an_invalid_machine_is_rejected(option, text, allowed):
    with pytest.raises(CommandError) as caught:
        run(option, text)
    assert str(caught.value) == f"Error: {option} must be {allowed} (got {text})"


def test_sizes_and_times_have_units():
    arguments = ("--cores", "8", "--users", "20000", "--json")
    plain = run(*arguments, "--memory", "32", "--service-time-ms", "4", "--think-time", "120")
    assert run(*arguments, "--memory", "32GiB", "--service-time-ms", "0.004s", "--think-time", "2min") == plain
    assert json.loads(run(*arguments, "--memory", "500MB"))["memory_megabytes"] == round(500e6 / 2**20)
