"""Steps of random histories that are played by requests."""

from hypothesis import strategies as st

from cdb_rest.models import GlobalTag, GlobalTagStatus, PayloadIOV, PayloadList, PayloadType
from cdb_rest.writes.global_tags import delete_global_tag

TAGS = ("a", "b")
TYPES = ("Gain", "Noise")
NUMBERS = st.integers(0, 4)
STEPS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(TAGS)),
    st.tuples(st.just("delete"), st.sampled_from(TAGS)),
    st.tuples(st.just("clone"), st.sampled_from(TAGS), st.sampled_from(TAGS)),
    st.tuples(st.just("status"), st.sampled_from(TAGS), st.sampled_from(["locked", "unlocked", "unlocked", "frozen"])),
    st.tuples(st.just("list"), st.sampled_from(TAGS), st.sampled_from(TYPES)),
    st.tuples(st.just("insert"), st.sampled_from(TAGS), st.sampled_from(TYPES), NUMBERS, NUMBERS, st.integers(0, 2)),
    st.tuples(st.just("delete iov"), st.sampled_from(TAGS), st.sampled_from(TYPES), NUMBERS, NUMBERS),
)


def play(api, step):
    """Send the step's request; it may well be refused."""
    match step:
        case "create", tag:
            api.post("gt", {"name": tag, "status": "unlocked"})
        case "delete", tag:
            api.delete(f"deleteGlobalTag/{tag}")
        case "clone", source, target:
            api.post(f"cloneGlobalTag/{source}/{target}")
        case "status", tag, status:
            api.put(f"gt_change_status/{tag}/{status}")
        case "list", tag, kind:
            name = api.post("pl", {"payload_type": kind}).ok()["name"]
            api.put("pl_attach", {"global_tag": tag, "payload_list": name})
        case "insert", tag, kind, start, length, url:
            row = {"global_tag": tag, "payload_type": kind, "payload_url": f"file{url}", "checksum": "c"}
            until = [start + length, 0] if length else "next"
            api.post("payload-iovs/insert", row | {"since": [start, 0], "until": until})
        case "delete iov", tag, kind, start, length:
            end = f"/{start + length}/0" if length else ""
            api.delete(f"deletePayloadIOV/{tag}/{kind}/{start}/0{end}")


def paths():
    yield "globalTags"
    for tag in TAGS:
        yield from (f"globalTag/{tag}", f"globalTag/{tag}?light", f"gtPayloadLists/{tag}")
        yield from (f"payloadiovs/?gtName={tag}&majorIOV=2&minorIOV=0&strict={strict}" for strict in (0, 1))


def clear():
    """Take everything away that an earlier history left; its change log stays, as it would."""
    GlobalTag.objects.update(status=GlobalTagStatus.objects.get(name="unlocked"))
    for tag in GlobalTag.objects.all():
        delete_global_tag(name=tag.name)
    PayloadIOV.objects.all().delete()
    PayloadList.objects.all().delete()
    PayloadType.objects.all().delete()
