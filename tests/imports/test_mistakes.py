"""Files as people make them, with and without mistakes: each has the same outcome in every way, and so do the rows afterwards."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.models import GlobalTagChange, PayloadIOV
from cdb_rest.rules.moment import OPEN
from cdb_rest.writes import imports
from tests.builders import Builder, emptied, make_statuses
from tests.imports.ways import WAYS, Outcome, command, post, rows, valid

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = "a1-O b5-6 c8-O"
HEADER = b"payload_type,payload_url,since,until\n"
ENDS = b"payload_type,payload_url,since,major_iov_end,minor_iov_end\n"


def refused(*lines, code="invalid_input"):
    return Outcome(code, list(lines), set()), BEFORE


def stored(after, *lines, warnings=()):
    return Outcome("stored", list(lines), set(warnings)), after


def to_confirm(*lines, warnings):
    return Outcome("confirmation_required", list(lines), set(warnings)), BEFORE


UNCHANGED = Outcome("unchanged", [], set()), BEFORE
MANY = [f"m,{start}," for start in range(1000, 10_999)]
# A file for the rows `BEFORE`, with its outcome and the rows afterwards.
FILES = {
    "a: the same start twice": (rows("x,10,11", "y,10,12"), *refused(3)),
    "b: out of order": (rows("z,12,", "y,10,", "x,9,"), *stored(f"{BEFORE} x9-O y10-O z12-O")),
    "b: the payload of before comes back": (rows("x,2,", "a,3,"), *stored("a1-O x2-O a3-O b5-6 c8-O")),
    "b: it comes back up to an end": (rows("x,2,", "a,3,4"), *stored("a1-2 x2-O a3-4 a4-O b5-6 c8-O")),
    "c: overlap in the file": (rows("x,10,19", "y,13,14"), *refused(3)),
    "c: overlap, out of order": (rows("y,13,", "x,10,19"), *refused(2)),
    "d: end before start": (rows("x,10,9"), *refused(2)),
    "d: empty interval": (ENDS + b"Gain,x,10,10,0\n", *refused(2)),
    "e: unknown type": (HEADER + b"Gain,x,10,\nGian,y,11,\nGian,z,12,\n", *refused(3, code="payload_type_not_found")),
    "f: another case": (rows("x,9,", "A,10,"), *stored(f"{BEFORE} x9-O A10-O", 3, warnings=["other_case"])),
    "f: a space at the end": (rows("C ,10,"), *stored(f"{BEFORE} C 10-O", 2, warnings=["other_case"])),
    "g: empty checksum": (b"payload_type,payload_url,checksum,since\nGain,x,,10\n", *stored(f"{BEFORE} x10-O")),
    "g: another checksum": (
        b"payload_type,payload_url,checksum,since\nGain,a,other,10\nGain,y,1,11\nGain,y,2,12\n",
        *stored(f"{BEFORE} a10-O y11-O y12-O", 2, 3, 4, warnings=["other_checksum"]),
    ),
    "h: no column for the start": (b"payload_type,payload_url\nGain,x\n", *refused(1)),
    "h: a row cut short": (HEADER + b"Gain,x,10,\nGain,y,11\n", *refused(3)),
    "h: a row too long": (HEADER + b"Gain,x,10,,\n", *refused(2)),
    "h: a file cut off": (HEADER + b"Gain,x,10,5", *refused(2, code="file_may_be_cut_off")),
    "i: columns in another order": (b"until,since,payload_url,payload_type\n,10,x,Gain\n", *stored(f"{BEFORE} x10-O")),
    "i: an index without a name": (b",payload_type,payload_url,since\n0,Gain,x,10\n", *stored(f"{BEFORE} x10-O")),
    "i: names in other case": (b" Payload_Type ,PAYLOAD_URL,Since\nGain,x,10\n", *stored(f"{BEFORE} x10-O")),
    "i: an extra column": (b"payload_type,payload_url,since,note\nGain,x,10,mine\n", *refused(1)),
    "i: a misspelt column": (b"payload_type,payload_url,sinze\nGain,x,10\n", *refused(1)),
    "i: no header": (b"# mine\nGain,x,10,\n", *refused(2)),
    "i: too many columns": (b"payload_type,payload_url,since" + b",x" * 99 + b"\n", *refused(1)),
    "j: no end, next and open": (rows("x,9,", "y,10,next", "z,11,OPEN"), *stored(f"{BEFORE} x9-O y10-O z11-O")),
    "j: ends of all kinds": (
        HEADER + b'Gain,w,9,10\nGain,x,10,"11,0"\nGain,y,11,"11,end"\nGain,z,12,"13,5"\n',
        *stored("a1-O b5-6 c8-9 w9-10 x10-11 y11-12 z12-13.5 c13.5-O"),
    ),
    "j: numbers": (ENDS + f"Gain,x,9,10,0\nGain,y,10,{OPEN},{OPEN}\n".encode(), *stored("a1-O b5-6 c8-9 x9-10 y10-O")),
    "j: half an end": (ENDS + b"Gain,x,9,10,\n", *refused(2)),
    "j: JSON": (
        json.dumps([{"payload_type": "Gain", "payload_url": "x", "since": [9, 0], "until": [9, "end"]}]).encode(),
        *stored("a1-O b5-6 c8-9 x9-10 c10-O"),
    ),
    "j: JSON Lines": (b'{"payload_type": "Gain", "payload_url": "x", "since": 9, "until": "next"}\n', *stored(f"{BEFORE} x9-O")),
    "j: another mode": (
        b'payload_type,payload_url,since,until,mode\nGain,x,9,"9,4",discrete\n',
        *stored("a1-O b5-6 c8-9 x9-9.5 c9.5-O"),
    ),
    "k: semicolons": (b'payload_type;payload_url;since;until\nGain;x;10,0;\n', *stored(f"{BEFORE} x10-O")),
    "k: tabs": (b"payload_type\tpayload_url\tsince\nGain\tx\t10\n", *stored(f"{BEFORE} x10-O")),
    "k: byte order mark and CRLF": (
        b"\xef\xbb\xbf" + rows("x,10,").replace(b"\n", b"\r\n"),
        *stored(f"{BEFORE} x10-O"),
    ),
    "k: UTF-16": (rows("x,10,").decode().encode("utf-16"), *refused(1)),
    "k: a long line": (HEADER + b"Gain," + b"x" * 70_000 + b",1,\n", *refused(2)),
    "l: numbers of a spreadsheet": (
        HEADER + b'Gain,x,1e3,\nGain,x,+5,\nGain,x,5.0,\nGain,x,"1,000,0",\nGain,x,NaN,\n',
        *refused(2, 3, 4, 5, 6),
    ),
    "l: a rounded end": (ENDS + b"Gain,x,10,9223372036854770000,9.22337E+18\n", *refused(2)),
    "m: one of 10,000 rows removes": (rows(*MANY, "x,2,900"), *to_confirm(10_001, warnings=["removed", "long"])),
    "n: an IOV is removed": (rows("x,4,9"), *to_confirm(2, warnings=["removed"])),
    "o: a gap": (rows("x,3,4", "y,0,1"), *stored("y0-1 a1-3 x3-4 a4-O b5-6 c8-O")),
    "p: ten times as far": (rows("x,100,"), *stored(f"{BEFORE} x100-O", 2, warnings=["far_start"])),
    "q: the export": (rows("a,1,open", "b,5,6", "c,8,open"), *UNCHANGED),
    "q: a part of an IOV": (rows("a,2,4"), *UNCHANGED),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", FILES)
def test_a_file_has_the_same_outcome_in_every_way(request, way, case):
    request.getfixturevalue("stored")(BEFORE)
    content, outcome, after = FILES[case]
    assert way(content) == outcome
    found = valid()
    assert found == after if len(found) < 1000 else found.startswith(after), found
    if outcome.kind != "stored":
        assert not GlobalTagChange.objects.exists()


@pytest.mark.parametrize("way", WAYS)
def test_an_export_with_one_url_edited_replaces_only_this_one(build, api, way):
    tag = build.tag()
    for name in ("Gain", "Noise"):
        payload_list = build.list(tag, name)
        for url, since, until in (("a", 1, 4), ("b", 5, OPEN), ("c", 8, OPEN)):
            build.iov(payload_list, (since, 0), (until, OPEN if until == OPEN else 0), url=f"{name}/{url}")
    export = api.get("global-tags/tag/export").content
    assert way(export) == Outcome("unchanged", [], set())
    edited = export.replace(b"Gain/b", b"Gain/B2")
    assert way(edited) == Outcome("stored", [], set())
    assert api.get("global-tags/tag/export").content == edited


def test_a_confirmed_import_is_one_change_with_its_comment(request, api):
    request.getfixturevalue("stored")(BEFORE)
    error = post(rows("x,4,9")).error(409, "confirmation_required")
    assert [row["row"] for row in error["rows"]] == [1] and "b [(5, 0), (6, 0))" in error["detail"]
    key = {"Idempotency-Key": "one", "CDB-Comment": "meant"}
    made = [post(rows("x,4,9"), "confirm=1", **key).json for _ in range(2)]
    assert made[0] == made[1] and made[0]["revision"] == 1
    assert valid() == "a1-4 x4-9 c9-O"
    [change] = GlobalTagChange.objects.all()
    assert (change.action, change.comment) == ("bulk", "meant")
    post(rows("y,4,9"), "confirm=1", **key).error(409, "idempotency_key_reused")
    command(rows("z,2,10"), "--confirm")
    assert valid() == "a1-2 z2-10 c10-O"


MOMENTS = st.integers(0, 12)
ROWS = st.dictionaries(MOMENTS, st.tuples(st.sampled_from("abc"), st.integers(1, 6) | st.none()), max_size=5)


def test_the_effects_of_a_large_file_are_those_of_a_small_one(build, monkeypatch):
    build.list(build.tag(), "Gain")
    content = rows("b,30,31", "a,1,", "c,2,4", "C,6,", "far,900,950", "d,5,", "a,8,9", "b,9,10", "last,950,", "e,10,11")
    found = []
    for rows_at_once in (50_000, 2):
        monkeypatch.setattr(imports, "ROWS_AT_ONCE", rows_at_once)
        found.append(post(content, "dry_run=1").json)
    assert found[0] == found[1]
    assert {warning["kind"] for warning in found[0]["warnings"]} == {"gap", "far_start", "other_case", "long"}


def states(found):
    """The payload at each of 20 moments for rows {start: (payload, length or None)}: that of the last start, up to its end."""
    last = [max((since for since in found if since <= at), default=None) for at in range(20)]
    return [since is not None and _at(found[since], at - since) for at, since in enumerate(last)]


def _at(row, after):
    url, length = row
    return url if length is None or after < length else None


@settings(max_examples=40, deadline=None, suppress_health_check=[*HealthCheck])
@given(before=ROWS, since=MOMENTS, length=st.integers(1, 6) | st.none())
def test_effects_are_those_of_a_model(before, since, length):
    make_statuses()
    with emptied():
        build = Builder()
        payload_list = build.list(build.tag())
        for start, (url, until) in before.items():
            end = (OPEN, OPEN) if until is None else (start + until, 0)
            build.iov(payload_list, (start, 0), end, url=f"{url}{start}")
        old = states({start: (f"{url}{start}", until) for start, (url, until) in before.items()})
        end = "" if length is None else since + length
        file = rows(f"x,{since},{end}")
        [found] = post(file, "dry_run=1").ok()["payload_types"]
        assert post(file, "confirm=1").ok()["payload_types"] == [found]
        new = states(
            {
                iov.major_iov: (
                    iov.payload_url,
                    None if iov.major_iov_end == OPEN else iov.major_iov_end - iov.major_iov,
                )
                for iov in PayloadIOV.objects.filter(payload_list__isnull=False)
            }
        )
        pairs = [(was or None, now or None) for was, now in zip(old, new, strict=True)]
        differing = [at for at, (was, now) in enumerate(pairs) if was != now]
        assert found["difference_count"] == sum(at == 0 or pairs[at] != pairs[at - 1] for at in differing)
        if differing:
            until = "open" if differing[-1] == 19 else [differing[-1] + 1, 0]
            assert found["interval"] == {"since": [differing[0], 0], "until": until}
        fates = dict.fromkeys(("shortened", "starts_later", "split", "replaced", "removed"), 0)
        for start, (url, _) in before.items():
            name = f"{url}{start}"
            was, now = ([at for at in range(20) if state[at] == name] for state in (old, new))
            if was == now:
                continue
            if not now:
                fates["replaced" if start == since else "removed"] += 1
            elif now[-1] - now[0] + 1 > len(now):
                fates["split"] += 1
            else:
                fates["shortened" if now[0] == was[0] else "starts_later"] += 1
        assert {name: found[name] for name in fates} == fates
        inner = [[at for at, url in enumerate(state) if url] for state in (old, new)]
        holes = [
            {at for at in range(min(found, default=0), max(found, default=0)) if at not in found} for found in inner
        ]
        assert bool(found["gaps"]) == bool(holes[1] - holes[0])
