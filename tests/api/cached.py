"""The paths and the write that the tests of HTTP caching share."""

LOOKUP = "payloadiovs/?gtName=tag&majorIOV=5&minorIOV=0"
OF_THE_TAG = (LOOKUP, "globalTag/tag", "globalTag/tag?light", "gtPayloadLists/tag")


def insert(api, url, since):
    row = {
        "global_tag": "tag",
        "payload_type": "Gain",
        "payload_url": url,
        "checksum": "c",
        "since": since,
        "until": "open",
    }
    api.post("payload-iovs/insert", row).ok()
