"""The routes of payload types and payload lists, as existing clients know them: shapes and status codes."""

import pytest

from tests.api.shapes import LIST, NAMED, NESTED_LIST, keys

pytestmark = pytest.mark.django_db
parametrize = pytest.mark.parametrize


@parametrize("path", ["pt", "payload-types"])
def test_payload_types(api, path):
    created = api.post(path, {"name": "Gain", "description": "of the calorimeter"}).ok()
    assert keys(created) == NAMED
    assert api.get(path).ok() == [created]


@parametrize("path", ["deletePayloadType/{}", "payload-types/{}/delete"])
def test_delete_payload_type(api, world, path):
    api.delete(path.format("Gain")).error(409, "payload_type_in_use")
    api.post("pt", {"name": "Unused"}).ok()
    assert keys(api.delete(path.format("Unused")).ok()) == ["detail"]
    api.delete(path.format("Unused")).error(404, "payload_type_not_found")


@parametrize("path", ["pl", "payload-lists"])
def test_create_payload_list(api, path):
    api.post("pt", {"name": "Gain"}).ok()
    made = api.post(path, {"payload_type": "Gain"}).ok()
    assert keys(made) == LIST
    assert made["name"] == f"Gain_{made['id']}"
    assert made["global_tag"] is None and made["payload_type"] == "Gain"
    api.post(path, {"payload_type": "Unknown"}).error(404, "payload_type_not_found")


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["pl", "payload-lists"])
def test_nested_payload_lists(api, world, path):
    lists = api.get(path).ok()
    assert all(keys(one) == NESTED_LIST for one in lists)
    assert [(one["global_tag"], len(one["payload_iov"])) for one in lists] == [("run24", 2), ("run24", 0), (None, 0)]


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["pl/{}", "payload-lists/{}"])
def test_nested_payload_list_by_id(api, world, path):
    one = api.get(path.format(world["gain"].id)).ok()
    assert keys(one) == NESTED_LIST
    assert [iov["payload_url"] for iov in one["payload_iov"]] == ["early", "late"]
    api.get(path.format(10**9)).error(404, "payload_list_not_found")
    api.get(path.format(2**63)).error(400, "invalid_input")
    api.get(path.format("abc")).error(400, "invalid_input")


def test_payload_list_by_name(api, world):
    one = api.get(f"payload-lists/by-name/{world['gain'].name}").ok()
    assert keys(one) == [*LIST, "iov_count"]
    assert one["iov_count"] == 2
    api.get("payload-lists/by-name/nothing").error(404, "payload_list_not_found")
    # Unknown parameters are members of the error, but never replace its code and its detail.
    refused = api.get("payload-lists/by-name/nothing?code=1&detail=2&other=3").error(400, "unknown_parameter")
    assert isinstance(refused["other"], list)


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["pl_attach", "payload-lists/attach"])
def test_attach_payload_list_in_place_of_the_old_one(api, world, path):
    body = {"global_tag": "run24", "payload_list": world["detached"].name}
    attached = api.put(path, body).ok()
    assert keys(attached) == LIST
    assert (attached["global_tag"], attached["payload_type"]) == ("run24", "Gain")
    assert api.get("gtPayloadLists/run24").ok()["Gain"] == world["detached"].name
    assert api.get(f"pl/{world['gain'].id}").ok()["global_tag"] is None
    assert api.put(path, body).ok() == attached
    api.put(path, body | {"global_tag": "missing"}).error(404, "global_tag_not_found")
    api.put(path, body | {"payload_list": "nothing"}).error(404, "payload_list_not_found")


@parametrize("path", ["deletePayloadList/{}", "payload-lists/{}/delete"])
def test_delete_payload_list(api, world, path):
    api.delete(path.format(world["gain"].name)).error(409, "payload_list_not_empty")
    assert keys(api.delete(path.format(world["detached"].name)).ok()) == ["detail"]
    api.delete(path.format(world["detached"].name)).error(404, "payload_list_not_found")
