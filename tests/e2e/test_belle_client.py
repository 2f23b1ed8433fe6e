"""The four calls of the Belle II client, with a service in discrete mode."""

import pytest

from tests.e2e.service import JobClient, Service


@pytest.fixture(scope="module", params=["run", "serve"])
def belle(request, new_directory):
    if request.param == "serve":
        request.getfixturevalue("needs_packages")
    settings = {
        "CDB_IOV_MODE": "discrete",
        "CDB_PAYLOAD_BASE_URL": "https://payloads.example/files",
        "SCENARIO": "none",
    }
    service = Service(new_directory() / "data", request.param, **settings).start()
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
