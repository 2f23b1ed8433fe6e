"""Rows and requests that several tests of payload-iovs/insert use."""

PATH = "payload-iovs/insert"


def body(**changes):
    return {
        "global_tag": "tag",
        "payload_type": "Gain",
        "payload_url": "new.root",
        "checksum": "ab12",
        "since": [5, 0],
        "until": "open",
    } | changes


def rows(api):
    """URL, start and end of each row of the tag."""
    lists = api.get("globalTag/tag").ok()["payload_lists"]
    return [
        (iov["payload_url"], (iov["major_iov"], iov["minor_iov"]), (iov["major_iov_end"], iov["minor_iov_end"]))
        for payload_list in lists
        for iov in payload_list["payload_iov"]
    ]
