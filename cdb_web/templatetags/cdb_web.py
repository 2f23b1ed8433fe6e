"""Template filters and tags of the pages."""

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from django import template
from django.conf import settings
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cdb_rest.models import ChangeAction, GlobalTagChange
from cdb_rest.rules.moment import END_OF_TIME, OPEN, Interval, Mode, Moment
from cdb_web.inputs import plain_moment

register = template.Library()
# Where Django's labels are not clear.
ACTIONS: dict[str, str] = {
    ChangeAction.ADOPT: "Took over from nopayloaddb",
    ChangeAction.SEED: "Generated example data",
    ChangeAction.ATTACH_IOV: "Attach IOV",
    ChangeAction.DELETE_IOV: "Delete IOV",
    ChangeAction.BULK: "Bulk insert or import",
    ChangeAction.RESTORE: "Restoration of the database",
}

# What links between the pages of a tag keep. The same names are in timeline.js.
KEPT = ("rev", "since", "until", "lanes", "fold", "gaps", "changed", "select", "at")


@register.filter
def moment_text(moment: Moment) -> str:
    """A moment in the form `major,minor`, for query strings. `AFTER_ALL` becomes the greatest moment, an open end."""
    return "{},{}".format(*min(moment, END_OF_TIME))


@register.filter
def start_text(moment: tuple[int, int]) -> str:
    """A moment in the form `major, minor`, for people."""
    return f"{moment[0]}, {moment[1]}"


@register.filter
def end_text(moment: tuple[int, int]) -> str:
    """The end of an interval in the wire format, or "open"; inclusive, "end" is the last minor number."""
    if tuple(moment) == END_OF_TIME:
        return "open"
    is_last = moment[1] == OPEN and Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE
    return f"{moment[0]}, end" if is_last else start_text(moment)


@register.filter
def up_to(row: Mapping[str, Any], limit: Moment | None) -> str:
    """Where an IOV with the columns of the database really ends: not after `limit`, the next start in its payload list or the end
    of the part that counts. Another end that is stored is added as a note. None means that no limit is known.
    """
    stored, mode = Moment(row["major_iov_end"], row["minor_iov_end"]), Mode(settings.CDB_IOV_MODE)
    if limit is None or limit >= Interval.from_wire(Moment(0, 0), stored, mode).end:
        return end_text(stored)
    end = end_text(interval_end(Interval(Moment(0, 0), limit)))
    return format_html('{} <small class="stored">stored: {}</small>', end, end_text(stored))


@register.filter
def utc(time: datetime) -> SafeString:
    """A time element, in UTC, to the minute; its title has the seconds."""
    time = time.astimezone(UTC)
    texts = (f"{time:%Y-%m-%dT%H:%M:%SZ}", f"{time:%Y-%m-%d %H:%M:%S} UTC", f"{time:%Y-%m-%d %H:%M} UTC")
    return format_html('<time datetime="{}" title="{}">{}</time>', *texts)


@register.filter
def action_text(change: GlobalTagChange) -> str:
    """What a change did, in words."""
    return ACTIONS.get(change.action) or change.get_action_display()


@register.filter
def line(text: str, number: int) -> str | None:
    """The line of a file with a number, None in a JSON array, whose rows are no lines."""
    lines = [] if text.lstrip().startswith("[") else text.split("\n")
    return lines[number - 1] if number <= len(lines) else None


@register.filter
def interval_end(interval: Interval) -> Moment:
    """The end of an interval in the wire format."""
    return interval.on_wire(Mode(settings.CDB_IOV_MODE))[1]


@register.filter
def percent(share: float) -> str:
    """A fraction in percent. Only 1 is shown as 100 %, and only 0 as 0 %."""
    if share in (0, 1):
        return f"{share * 100:.0f} %"
    return f"{min(max(share * 100, 0.01), 99.99):.2f} %"


@register.simple_tag
def api_path(*path: Any, **parameters: Any) -> str:
    """The path of the API with these parts and a query string.

    Parameters without a value are left out; a list is repeated.
    """
    given = {name: value for name, value in parameters.items() if value is not None and value != ""}
    tail = f"?{urlencode(given, doseq=True, safe=',')}" if given else ""
    return f"/api/cdb_rest/{'/'.join(quote(str(part), safe='') for part in path)}{tail}"


@register.simple_tag(takes_context=True)
def kept(context: dict[str, Any], **more: Any) -> str:
    """A query string with the revision and the view of the timeline that the page has, for links to other pages of the tag.

    On the page of the history, `since` and `until` are times. With `packed`, both are in `window`.
    """
    query, packed = context["request"].GET, more.pop("packed", False)
    values = {name: query.get(name) for name in KEPT} | more
    since, _, until = query.get("window", "").partition("..")
    if since and until:
        values |= {"since": since, "until": until}
    if packed:
        since, until = values.pop("since"), values.pop("until")
        values["window"] = f"{since}..{until}" if since and until else None
    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given, safe=',')}" if given else ""


@register.simple_tag(takes_context=True)
def curl(context: dict[str, Any], *path: Any, **parameters: Any) -> SafeString:
    """An element with the command that gets the same data from the API, at a path of these parts.

    Parameters without a value are left out; a list is repeated.
    """
    request: HttpRequest = context["request"]
    moments = {name: plain_moment(parameters[name]) for name in ("since", "until") if parameters.get(name)}
    address = f"{request.scheme}://{request.get_host()}{api_path(*path, **parameters | moments)}"
    return format_html(
        '<details class="command"><summary>Copy as a command</summary><pre><code>curl {}</code></pre></details>',
        shlex.quote(address),
    )
