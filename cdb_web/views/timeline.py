"""The data of a timeline: lanes of pixels, and the rows at a pixel."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict

from cdb_rest.analysis.contents import Contents, ListVersion
from cdb_rest.analysis.difference import Scope, spans
from cdb_rest.exports.export import Selection, find_source
from cdb_rest.rules.errors import InvalidInputError, invalid_field, quoted
from cdb_rest.rules.moment import AFTER_ALL, EVERYTHING, OPEN, Interval, Moment
from cdb_web import inputs
from cdb_web.axis import Axis
from cdb_web.bulk import bulk
from cdb_web.iov_rows import read_rows
from cdb_web.lanes import differing, extent, lane, last_end, next_moment, with_space
from cdb_web.page import page, show
from cdb_web.templatetags.cdb_web import end_text, interval_end, moment_text, start_text

MAX_WIDTH = 4000
DEFAULT_WIDTH = 1000
# Lanes in one response, and rows in one text.
MAX_LANES = 50
MAX_ROWS = 8
# Minor numbers on the axis of a major number in which nothing changes.
DEFAULT_MINOR_NUMBERS = 1000
# IOVs far from the others that the page names at each side.
MAX_BEYOND = 3
# Names with the same beginning, up to one of these characters, are a group.
GROUP = re.compile(r"[_\-./:]")
ZOOMS = [("Zoom in", 0.25, 0.75), ("Zoom out", -0.5, 1.5), ("← Earlier", -0.5, 0.5), ("Later →", 0.5, 1.5)]


@page
def lanes(request: HttpRequest, name: str) -> HttpResponse:
    """The axis, and the lanes of the payload types `type`, as JSON.

    `since` and `until` are the window, by default all that the tag has. `left` and `right` choose a part of it, as fractions of
    the width from -10 to 10; below 0 and above 1 they extend it. `width` is the number of pixels, and `rev` the revision. A
    response without types has only the axis. With `against`, lanes say where the payloads differ from that revision; `at` is a
    moment whose pixel is the `marker`.
    """
    found = inputs.contents(request.GET, name)
    types = request.GET.getlist("type")
    if len(types) > MAX_LANES:
        raise InvalidInputError(
            f"type: at most {MAX_LANES} payload types are accepted in one request (got {len(types)})."
        )
    for payload_type in types:
        inputs.check_list(found, name, payload_type)
    axis = axis_of(request.GET, found)
    window = axis.window
    usual = bulk(found).window
    until = usual.end if usual else AFTER_ALL
    at = inputs.text(request.GET, "at")
    marker = inputs.moment("Mark the moment", at) if at else None
    is_shown = marker is not None and window.contains(marker)
    return JsonResponse(
        {
            "since": moment_text(window.start),
            "until": moment_text(interval_end(window)),
            "text": f"{start_text(window.start)} to {end_text(interval_end(window))}"
            + (f"; {start_text(marker)} is outside" if marker and not is_shown else ""),
            "unit": settings.CDB_MAJOR_NAME if axis.major is None else f"{settings.CDB_MINOR_NAME} of {axis.major}",
            "labels": axis.labels(),
            "marker": axis.pixel(marker) if marker and is_shown else None,
            "lanes": {
                payload_type: lane(found.lists[payload_type][0], axis, until)._asdict()
                | _difference(request.GET, name, payload_type, axis)
                for payload_type in types
            },
        }
    )


def _difference(query: QueryDict, name: str, payload_type: str, axis: Axis) -> dict[str, str]:
    """Where the payload type differs from the revision `against`, if it is given."""
    against = inputs.revision(query, "against")
    if against is None:
        return {}
    tags = [(name, against)], [(name, inputs.revision(query))]
    return {"differs": differing(spans(Scope(*tags, [payload_type], axis.window).read()), axis)}


@page
def rows(request: HttpRequest, name: str) -> HttpResponse:
    """The rows of the payload type `type` that are valid at the pixel `x`, as a part of a page."""
    query = request.GET
    found = inputs.contents(query, name)
    axis, payload_type = axis_of(query, found), query.get("type", "")
    inputs.check_list(found, name, payload_type)
    pixel = int(_number(query, "x", 0, axis.width - 1))
    start = axis.moment_at(pixel)
    end = axis.moment_at(pixel + 1) if pixel + 1 < axis.width else axis.window.end
    # A pixel may be narrower than a number.
    after = Moment(start.major + 1, 0) if axis.major is None else next_moment(start)
    window = Interval(start, max(end, after))
    source = find_source(Selection(name, (payload_type,), window, inputs.revision(query)))
    payload_list = found.lists[payload_type][0]
    gap_since, first = last_end(payload_list, window.start), extent([payload_list])
    return show(
        request,
        "rows.html",
        {
            "name": name,
            "payload_type": payload_type,
            "rows": read_rows(source, window, MAX_ROWS, gap_since),
            "before": first and window.end <= first.start and first.start,
            "window": window,
            "rev": inputs.text(query, "rev"),
        },
    )


def timeline_values(query: Mapping[str, str], contents: Contents, types: Sequence[str]) -> dict[str, object]:
    """The values for `timeline.html`: a timeline with a lane for each of these payload types.

    Raises the errors of `axis_of`.
    """
    axis = axis_of(query, contents)
    return {
        "axis": axis,
        "lanes": types,
        "groups": _groups(types),
        "beyond": _beyond(contents),
        "since": moment_text(axis.window.start),
        "until": moment_text(interval_end(axis.window)),
        "zooms": ZOOMS,
    }


def _groups(types: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The names with the same beginning, each group with it; a group that needs no summary has an empty one."""
    found = [(group, list(names)) for group, names in groupby(types, lambda name: GROUP.split(name, maxsplit=1)[0])]
    return [(group if len(names) > 1 and len(found) > 1 else "", names) for group, names in found]


def _beyond(contents: Contents) -> list[tuple[str, int, list[tuple[str, Moment, Interval]]]]:
    """The IOVs that start far from the others: at each side their number, and the nearest ones with windows around them."""
    window, outliers = bulk(contents)
    found = []
    for title, side in (
        ("before", [item for item in reversed(outliers) if window and item[0] < window.start]),
        ("beyond", [item for item in outliers if window and item[0] >= window.start]),
    ):
        nearest = [(name, start, Interval(start, next_moment(start))) for start, name in side[:MAX_BEYOND]]
        if side:
            found.append((title, len(side), nearest))
    return found


def axis_of(query: Mapping[str, str], contents: Contents) -> Axis:
    """The axis that `since`, `until`, `left`, `right` and `width` of a query string ask for.

    The window of a whole major number is narrowed to the minor numbers in use, for which the database is asked. Raises
    `InvalidInputError` or `django.db.Error`.
    """
    width = int(_number(query, "width", 1, MAX_WIDTH, DEFAULT_WIDTH))
    lists = [payload_list[0] for payload_list in contents.lists.values()]
    axis = Axis.of(_window(query, contents, lists), width)
    if "left" in query or "right" in query:
        axis = axis.part(_number(query, "left", -10, 10), _number(query, "right", -10, 10, 1))
    if axis.major is not None and (axis.first, axis.last) == (0, OPEN + 1):
        # Of the 2^63 minor numbers of a major number, only a few are in use.
        axis = Axis.of(_used(lists, axis.window), width)
        if axis.last == OPEN + 1:
            axis = replace(axis, first=0, last=DEFAULT_MINOR_NUMBERS)
    return axis


def _window(query: Mapping[str, str], contents: Contents, lists: Sequence[ListVersion]) -> Interval:
    """The window that a query string asks for. Without one, it is that of most IOVs. An end that is not given is that of what is
    in use.
    """
    asked = inputs.window(query)
    if asked is not None and inputs.text(query, "since") and inputs.text(query, "until"):
        return asked
    if asked is None:
        usual = bulk(contents).window
        return with_space(usual) if usual else EVERYTHING
    used = _used(lists, asked)
    start = asked.start if inputs.text(query, "since") else used.start
    return Interval(start, used.end if start < used.end < AFTER_ALL else Moment(start.major + 1, 0))


def _used(lists: Sequence[ListVersion], window: Interval) -> Interval:
    """The part of a window in which rows start or end, with some space, or all of it if no row starts there."""
    found = extent(lists, window)
    return window if found is None else with_space(found, window)


def _number(query: Mapping[str, str], name: str, least: float, most: float, default: float = 0) -> float:
    """A number in a query string. Raises `InvalidInputError`."""
    text = query.get(name, str(default))
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise invalid_field(name, f"{name} must be a number from {least} to {most} (got {quoted(text)}).")
    return number
