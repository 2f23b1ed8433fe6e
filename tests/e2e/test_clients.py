"""The C++ client of nopayloaddb and that of Belle II: the sequences of calls that they make."""

import itertools

import pytest

from cdb_rest.rules.moment import OPEN
from tests.e2e.service import JobClient, Service

COUNTER = itertools.count()


class CppClient(JobClient):
    """The compiled client's operations, each as the calls it makes for it. A refusal raises `RefusedError`."""

    def write(self, method, path, body=...):
        status, parsed = self.call(method, path, body)
        if status != 200:
            raise RefusedError(status, parsed)
        return parsed

    def global_tags(self):
        return {tag["name"]: tag for tag in self.get("globalTags")}

    def status_exists(self, name):
        if name not in [status["name"] for status in self.get("gtstatus")]:
            self.write("POST", "gtstatus", {"name": name})

    def create_global_tag(self, name):
        self.status_exists("unlocked")
        self.write("POST", "gt", {"name": name, "status": "unlocked", "author": "anonymous"})

    def change_status(self, name, status):
        self.status_exists(status)
        self.write("PUT", f"gt_change_status/{name}/{status}", None)

    def clone(self, source, target):
        self.write("POST", f"cloneGlobalTag/{source}/{target}", None)

    def create_payload_type(self, name):
        self.write("POST", "pt", {"name": name})

    def insert_payload(self, tag, payload_type, url, start, end=None):
        if tag not in self.global_tags():
            raise RefusedError(404, tag)
        if payload_type not in [one["name"] for one in self.get("pt")]:
            raise RefusedError(404, payload_type)
        if payload_type not in self.get(f"gtPayloadLists/{tag}"):
            name = self.write("POST", "pl", {"payload_type": payload_type})["name"]
            self.write("PUT", "pl_attach", {"global_tag": tag, "payload_list": name})
        payload_list = self.get(f"gtPayloadLists/{tag}")[payload_type]
        iov = {"payload_url": url, "checksum": "c" * 32, "major_iov": start[0], "minor_iov": start[1]}
        if end:
            iov |= {"major_iov_end": end[0], "minor_iov_end": end[1]}
        created = self.write("POST", "piov", iov)
        self.write("PUT", "piov_attach", {"payload_list": payload_list, "piov_id": created["id"]})

    def payloads(self, tag, major, minor):
        if tag not in self.global_tags():
            raise RefusedError(404, tag)
        found = {}
        for row in self.get(f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV={minor}"):
            # By index, as compiled in.
            inside = (row[6], row[7]) > (major, minor)
            if inside:
                found[row[0]] = (row[1], int(row[4]), int(row[5]))
        return found

    def delete_payload_type(self, name):
        for tag in self.global_tags():
            payload_list = self.get(f"gtPayloadLists/{tag}").get(name)
            if payload_list:
                self.write("DELETE", f"deletePayloadList/{payload_list}")
        self.write("DELETE", f"deletePayloadType/{name}")


class RefusedError(Exception):
    pass


@pytest.fixture(params=["service", "served"])
def cpp(request):
    """The client of the service itself, and of the service in its production shape."""
    return CppClient(request.getfixturevalue(request.param).port)


@pytest.fixture
def names():
    number = next(COUNTER)
    return f"cpp_tag_{number}", f"cpp_type_{number}"


@pytest.fixture
def made(cpp, names):
    """The names of a global tag and a payload type that are there already."""
    cpp.create_global_tag(names[0])
    cpp.create_payload_type(names[1])
    return names


def test_create_insert_and_look_up_sees_its_own_write_at_once(cpp, made):
    tag, payload_type = made
    for run in range(5):
        cpp.insert_payload(tag, payload_type, f"file{run}", (0, run * 10), (0, run * 10 + 10))
        assert cpp.payloads(tag, 0, run * 10 + 9) == {payload_type: (f"file{run}", 0, run * 10)}
    assert cpp.payloads(tag, 0, 50) == {}
    assert cpp.global_tags()[tag]["payload_iov_count"] == 5
    assert "POST pl" in cpp.calls and cpp.calls.count("POST pl") == 1


def test_a_job_with_a_pinned_base_path_reads_what_it_read_then(cpp, made):
    tag, payload_type = made
    cpp.insert_payload(tag, payload_type, "then", (0, 10))
    pinned = CppClient(cpp.port, f"/pin/{tag}@{cpp.global_tags()[tag]['revision']}")
    lists = cpp.get(f"gtPayloadLists/{tag}")
    cpp.insert_payload(tag, payload_type, "later", (0, 10))
    cpp.write("DELETE", f"deleteGlobalTag/{tag}")
    for _ in range(3):
        assert list(pinned.global_tags()) == [tag]
        assert pinned.payloads(tag, 0, 15) == {payload_type: ("then", 0, 10)}
        assert pinned.get(f"gtPayloadLists/{tag}") == lists
        assert payload_type in [one["name"] for one in pinned.get("pt")]
    with pytest.raises(RefusedError):
        pinned.payloads("tiny", 0, 15)
    with pytest.raises(RefusedError) as refused:
        pinned.insert_payload(tag, payload_type, "now", (0, 20))
    assert refused.value.args[0] == 405


def test_the_client_s_own_test_of_locked_tags(cpp, made):
    tag, payload_type = made
    cpp.insert_payload(tag, payload_type, "first", (0, 10), (0, 20))
    cpp.change_status(tag, "locked")
    with pytest.raises(RefusedError) as refused:
        cpp.insert_payload(tag, payload_type, "same start", (0, 10))
    assert refused.value.args[0] == 409
    cpp.insert_payload(tag, payload_type, "appended", (0, 20))
    assert cpp.payloads(tag, 0, 15)[payload_type][0] == "first"
    assert cpp.payloads(tag, OPEN - 1, 0)[payload_type][0] == "appended"
    with pytest.raises(RefusedError) as refused:
        cpp.write("DELETE", f"deleteGlobalTag/{tag}")
    assert refused.value.args[0] == 409
    cpp.change_status(tag, "unlocked")
    cpp.write("DELETE", f"deleteGlobalTag/{tag}")
    assert tag not in cpp.global_tags()


def test_delete_a_payload_type_with_its_lists(cpp, made):
    tag, payload_type = made
    payload_list = cpp.write("POST", "pl", {"payload_type": payload_type})["name"]
    cpp.write("PUT", "pl_attach", {"global_tag": tag, "payload_list": payload_list})
    cpp.delete_payload_type(payload_type)
    assert payload_type not in [one["name"] for one in cpp.get("pt")]


@pytest.fixture(scope="module")
def belle(needs_packages, new_directory):
    settings = {
        "CDB_IOV_MODE": "discrete",
        "CDB_PAYLOAD_BASE_URL": "https://payloads.example/files",
        "SCENARIO": "none",
    }
    service = Service(new_directory() / "data", "serve", **settings).start()
    client = JobClient(service.port)
    for status in ("TESTING", "PUBLISHED"):
        client.call("POST", "gtstatus", {"name": status})
    client.call("POST", "gt", {"name": "data_prompt", "status": "unlocked"})
    client.call("POST", "pt", {"name": "BeamSpot"})
    name = client.call("POST", "pl", {"payload_type": "BeamSpot"})[1]["name"]
    client.call("PUT", "pl_attach", {"global_tag": "data_prompt", "payload_list": name})
    # Experiment 8, runs 10 to 20 inclusive; then run 21 alone; then to the end.
    for start, end in [((8, 10), (8, 20)), ((8, 21), (8, 21)), ((8, 22), None)]:
        iov = {
            "payload_url": f"run{start[1]}",
            "checksum": "c",
            "major_iov": start[0],
            "minor_iov": start[1],
            "revision": "7",
        }
        if end:
            iov |= {"major_iov_end": end[0], "minor_iov_end": end[1]}
        created = client.call("POST", "piov", iov)[1]
        assert client.call("PUT", "piov_attach", {"payload_list": name, "piov_id": created["id"]})[0] == 200
    assert client.call("PUT", "gt_change_status/data_prompt/PUBLISHED", None)[0] == 200
    yield client
    service.stop()


def test_the_sequence(belle):
    assert "PUBLISHED" in [status["name"] for status in belle.get("gtstatus")]
    assert belle.get("user_settings/CDB_PAYLOAD_BASE_URL") == {"CDB_PAYLOAD_BASE_URL": "https://payloads.example/files"}
    assert belle.get("user_settings/CDB_IOV_MODE") == {"CDB_IOV_MODE": "discrete"}
    assert belle.get("globalTag/data_prompt")["status"]["name"] == "PUBLISHED"
    for run, url in [(10, "run10"), (20, "run10"), (21, "run21"), (22, "run22"), (10**6, "run22")]:
        (row,) = belle.get(f"payloadiovs/?gtName=data_prompt&majorIOV=8&minorIOV={run}&shape=dict")
        assert (row["payload_type_name"], row["payload_url"], int(row["revision"])) == ("BeamSpot", url, 7)
    assert belle.get("payloadiovs/?gtName=data_prompt&majorIOV=8&minorIOV=9&shape=dict") == []


def test_inclusive_ends(belle):
    ask = "payloadiovs/?gtName=data_prompt&majorIOV=8&minorIOV={}&shape=dict&strict=1"
    assert [row["payload_url"] for row in belle.get(ask.format(20))] == ["run10"]
    assert [row["payload_url"] for row in belle.get(ask.format(21))] == ["run21"]
