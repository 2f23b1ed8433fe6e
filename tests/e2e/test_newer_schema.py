"""This version on the database of a newer one: a rolling upgrade, and the way back to this version."""

import contextlib

import psycopg2
import requests

from tests.e2e.faults import LOOKUP
from tests.e2e.service import JobClient

# What additive migrations may do: columns that are nullable or have a default, and a table and an index.
LATER = """
DO $$ DECLARE name regclass; BEGIN
    FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN later_note text, ADD COLUMN later_number integer NOT NULL DEFAULT 7', name);
    END LOOP;
END $$;
CREATE TABLE "Later" (id bigserial PRIMARY KEY, tag_id bigint NOT NULL REFERENCES "GlobalTag" DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX later_index ON "PayloadIOV" (later_note);
INSERT INTO django_migrations (app, name, applied) VALUES ('cdb_rest', '0999_later', now());
"""
WARNING = "Warning: a newer version of cdb has migrated the database (0999_later). This version uses it as it is."


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


def test_this_version_runs_on_the_schema_of_a_later_one(fresh):
    service = fresh().start()
    client = JobClient(service.port)
    use_everything(client, 1)
    # A newer version migrates while this one runs.
    url = f"postgresql://cdb@/cdb?host={service.data}/postgres/socket"
    with contextlib.closing(psycopg2.connect(url)) as newer, newer, newer.cursor() as cursor:
        cursor.execute(LATER)
    use_everything(client, 2)
    assert service.stop() == 0
    # And this version starts on what the newer one left.
    assert WARNING in service.start().start_lines
    use_everything(client, 3)
    assert client.call("GET", LOOKUP)[0] == 200
    assert requests.get(f"http://127.0.0.1:{service.port}/health/ready", timeout=60).status_code == 200
    for command in ("migrate", "check_history", "check_intervals"):
        run = service.manage(command)
        assert run.returncode == 0, run.stderr
    assert service.stop() == 0
