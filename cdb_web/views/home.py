"""The home page, with lookups for people: at many moments, in several global tags, with the real end of each row."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from cdb_rest.api.service import SERVICE, prefers_html, ready
from cdb_rest.history.contents import find_past, past_lists
from cdb_rest.http.lookup import MAX_TAGS
from cdb_rest.lookup.model import LookupQuery, Row
from cdb_rest.lookup.queries import reader_of
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadList
from cdb_rest.parsing.parameters import parse_as_of, parse_moment
from cdb_rest.rules.as_of import AsOf, TagState
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.rules.moment import AFTER_ALL, Interval, Mode, Moment
from cdb_web import inputs
from cdb_web.iov_rows import Place, next_starts
from cdb_web.page import newest_names, page, show, show_query

# Each of them is a lookup.
MAX_MOMENTS = 100
MAX_SHOWN = 2000


class Found(NamedTuple):
    """A row of a result, by columns: the tag that has it, the moments at which it is the result, and the limit of its validity:
    the next start in its list, or in the list of a tag that comes before.
    """

    row: dict[str, Any]
    tag: str
    since: Moment
    is_valid: bool
    moments: list[Moment]
    limit: Moment


class _Tag(NamedTuple):
    name: str
    rows: Mapping[Moment, Mapping[str, Row]]
    lists: Mapping[str, int]
    number: int | None


def look_up(values: Mapping[str, str], bases: Sequence[str]) -> dict[str, object] | None:
    """The result for the fields of the form, None if they are empty. As for the API, the first tag that has a valid row decides.

    The caller must be in a snapshot. Raises `InvalidInputError`, and the errors of a lookup.
    """
    moments = inputs.moments(values.get("moments", ""), MAX_MOMENTS)
    if values.get("major"):
        names = settings.CDB_MAJOR_NAME.capitalize(), settings.CDB_MINOR_NAME.capitalize()
        moments.insert(0, parse_moment(names, (values["major"], values["minor"] or "0")))
    if not values.get("tag") or not moments:
        return None
    if len(bases) >= MAX_TAGS:
        raise InvalidInputError(f"At most {MAX_TAGS} global tags are accepted (got {len(bases) + 1}).")
    moments = list(dict.fromkeys(moments))
    tags = [_read(state, moments) for state in _states(values, bases)]
    chosen: dict[tuple[int, Row, bool], list[Moment]] = defaultdict(list)
    for moment in moments:
        for key in _at(tags, moment):
            if key[2] or not values["strict"]:
                chosen[key].append(moment)
    keys = sorted(chosen, key=lambda key: (key[1].payload_type_name.encode(), chosen[key][0]))
    rows = _with_limits(tags, [(key, chosen[key]) for key in keys[:MAX_SHOWN]])
    return {
        "rows": rows,
        "moments": moments,
        "moment": moments[0],
        "any_ended": not all(item.is_valid for item in rows),
        "left_out": len(keys) - len(rows),
        "max_shown": MAX_SHOWN,
    }


def _states(values: Mapping[str, str], bases: Sequence[str]) -> list[TagState]:
    """The tags in their states. A revision is that of the first one, and a time holds for all of them."""
    past = {"Revision": values["rev"], "Time": values["at"]}
    as_of = parse_as_of({name: text for name, text in past.items() if text}, ("Revision", "Time"))
    others = as_of if as_of and as_of.time else None
    return [(values["tag"], as_of), *((base, others) for base in bases)]


def _read(state: TagState, moments: Sequence[Moment]) -> _Tag:
    name, as_of = state
    mode = Mode(settings.CDB_IOV_MODE)
    query = LookupQuery(tag=name, moment=moments[0], mode=mode, as_of=as_of)
    reader = reader_of(query)
    rows: dict[Moment, dict[str, Row]] = {}
    for moment in moments:
        body = reader(LookupQuery(tag=name, moment=moment, mode=mode, as_of=as_of), with_window=False).body
        found = [Row(*row) for row in orjson.loads(body or b"[]")]
        rows[moment] = {row.payload_type_name: row for row in found}
    return _Tag(name, rows, *_lists(name, as_of))


def _lists(name: str, as_of: AsOf | None) -> tuple[dict[str, int], int | None]:
    """The ids of the payload lists by payload type, and the number of the change that made the state."""
    if as_of is None:
        lists = PayloadList.objects.filter(global_tag__name=name)
        return dict(lists.values_list("payload_type__name", "id")), None
    past = find_past(name, as_of)
    return {item.payload_type: item.id for item in past_lists(past)}, past.number


def _at(tags: Sequence[_Tag], moment: Moment) -> list[tuple[int, Row, bool]]:
    """For each payload type the place of the tag that decides, and its row: the first valid one, or else the first one."""
    found: dict[str, tuple[int, Row, bool]] = {}
    for place, tag in enumerate(tags):
        for name, row in tag.rows[moment].items():
            is_valid = Interval.from_wire(row.since, row.until, Mode(settings.CDB_IOV_MODE)).contains(moment)
            if name not in found or (is_valid and not found[name][2]):
                found[name] = (place, row, is_valid)
    return list(found.values())


def _with_limits(tags: Sequence[_Tag], found: Sequence[tuple[tuple[int, Row, bool], list[Moment]]]) -> list[Found]:
    wanted = [
        (number, Place(tag.lists[row.payload_type_name], tag.number, row.since if above == place else max(moments)))
        for number, ((place, row, _), moments) in enumerate(found)
        for above, tag in enumerate(tags[: place + 1])
        if row.payload_type_name in tag.lists
    ]
    limits: dict[int, Moment] = defaultdict(lambda: AFTER_ALL)
    for (number, _), start in zip(wanted, next_starts([place for _, place in wanted]), strict=True):
        limits[number] = min(start, limits[number])
    return [
        Found(row._asdict(), tags[place].name, row.since, is_valid, moments, limits[number])
        for number, ((place, row, is_valid), moments) in enumerate(found)
    ]


# The newest changes on the home page.
NEWEST = 10
FIELDS = ("tag", "major", "minor", "rev", "at", "strict", "moments")


@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """The home page for browsers; links to the parts of the service, as JSON, for other clients."""
    # The health check has a timeout of its own, so it is not in the snapshot of the page.
    response = _home(request, orjson.loads(ready(request).content)) if prefers_html(request) else JsonResponse(SERVICE)
    patch_vary_headers(response, ["Accept"])
    return response


@page
def _home(request: HttpRequest, health: dict[str, str]) -> HttpResponse:
    query = request.GET
    fields = {name: inputs.text(query, name) for name in FIELDS}
    bases = [base for base in query.getlist("base") if base.strip()]
    values = {
        "values": fields,
        "bases": bases,
        "tags": [fields["tag"], *bases],
        "revisions": [fields["rev"], *([""] * len(bases))] if fields["rev"] else "",
        "has_more": bool(bases or any(fields[name] for name in ("rev", "at", "strict", "moments"))),
        "statuses": GlobalTag.objects.values("status__name").annotate(tags=Count("id")).order_by("status__name"),
        "names": newest_names(),
        "health": health,
        "newest": GlobalTagChange.objects.order_by("-number")[:NEWEST],
    }
    return show_query(request, "home.html", values, lambda given: {"found": look_up(given, bases)}, fields)


@page
def words(request: HttpRequest) -> HttpResponse:
    """The words that the pages use, each with its meaning."""
    return show(request, "words.html", {})
