"""The lookup strategies by scenario and pattern: database time, and whole responses."""

import json
import math
from typing import Any

from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.bench.rig import COSTS, Rig, table
from loadtests.client import Client, Response, lookups
from loadtests.reporting import plots
from loadtests.reporting.figures import percentile
from loadtests.reporting.result import Result, Table
from loadtests.service import Service, ServiceError, manage, running

TITLE = "Strategies"
# The names to try if the service does not list its strategies.
KNOWN = (
    "orm_orderby", "orm_max", "sql_distinct", "sql_group", "sql_lateral_pair", "sql_lateral_row", "sql_lateral_asc",
    "sql_lateral",
)  # fmt: skip
OWN = "the service's own"
# Larger tags do not stay in memory and are warmed up, unless a single lookup takes longer than SLOW_MILLISECONDS.
LARGE, SLOW_MILLISECONDS = 500_000, 100
PATTERNS = ("first", "random", "last")
INTRO = (
    "Database time is the value that the service reports in Server-Timing, for sequential requests of one client. Whole "
    "responses are measured by wrk with several connections. Patterns: first is the moment (0, 0), random is uniform in "
    "0…2^31-1, last is (2^31-1, 2^31-1). At the first moment nothing is valid, so that first returns no rows."
)
# The columns of the verdicts on plans; if a verdict has none of these, all are shown.
VERDICT = (
    "strategy", "scan", "index", "condition", "rows_read", "rows_removed", "heap_fetches", "buffers", "rows", "planning_ms",
    "execution_ms",
)  # fmt: skip
KEYS = (
    "strategy scenario pattern rows calls db_p50_ms db_p95_ms db_p99_ms wall_p50_ms connections answers_per_s p50_ms p95_ms "
    "p99_ms bytes_per_answer errors"
)


def measure(rig: Rig) -> Result:
    """Measure every combination for a limited time."""
    result = Result("strategies", TITLE, INTRO)
    rig.seed(*rig.sizes.strategy_scenarios)
    has_indexes = _indexes(rig, "create", result)
    try:
        with running(rig.settings) as service:
            rig.warm_up(service, *rig.sizes.strategy_scenarios)
            for name, route in routes(service, result).items():
                rig.say(f"strategies: {name}")
                for scenario in rig.sizes.strategy_scenarios:
                    result.raw += [
                        {"strategy": name, **_combination(rig, service, route, scenario, pattern)}
                        for pattern in PATTERNS
                    ]
        _verdicts(rig, result)
    finally:
        if has_indexes:
            _indexes(rig, "drop", result)
    _show(rig, result)
    return result


def routes(service: Service, result: Result) -> dict[str, str]:
    """The route of each strategy by name; missing ones are noted in the result."""
    found = {OWN: "payloadiovs/"}
    with Client(service.port) as client:
        listed = client.call("GET", "payloadiovs_strategies/")
        if listed.status == 200:
            names = [entry["name"] for entry in json.loads(listed.body)]
        else:
            result.notes.append("The service does not list its strategies; the known names were tried one by one.")
            names = list(KNOWN)
        for name in names:
            route = f"payloadiovs_{name}/"
            if client.call("GET", f"{route}?gtName=none&majorIOV=0&minorIOV=0").body.find(b"route_not_found") < 0:
                found[name] = route
    if missing := [name for name in names if name not in found]:
        result.notes.append(f"Not measured, because the service does not have them: {', '.join(missing)}.")
    return found


def _combination(rig: Rig, service: Service, route: str, scenario: str, pattern: str) -> dict[str, Any]:
    path = f"{route}?gtName={scenario}"
    with Client(service.port) as client:
        quick = max(one.wall for one in lookups(client, path, pattern, calls=2, seconds=0)) < SLOW_MILLISECONDS
        if quick and pattern == "random" and SCENARIOS[scenario].iovs >= LARGE:
            # Earlier strategies have displaced its data from memory.
            rig.settle(service.url(path), connections=8)
        responses = lookups(client, path, pattern, calls=rig.sizes.calls, seconds=rig.sizes.calls_seconds)
    row = {"scenario": scenario, "pattern": pattern, **_database(responses)}
    if pattern in rig.sizes.http_patterns:
        alone = row["wall_p50_ms"] / 1000
        # Slow lookups get the time of a few of them, with fewer connections, so that they do not wait for each other.
        connections = 8 if alone < 0.5 else 2
        seconds = min(max(rig.sizes.strategy_seconds, math.ceil(2.5 * alone)), rig.sizes.longest_seconds)
        row |= rig.load(service, service.url(path), connections=connections, seconds=seconds, mode=pattern)
    return row


def _database(responses: list[Response]) -> dict[str, Any]:
    walls = [response.wall for response in responses]
    times = [response.database for response in responses if response.database is not None]
    row = {"calls": len(responses), "rows": max(response.rows for response in responses)}
    for share in (50, 95, 99):
        row[f"db_p{share}_ms"] = percentile(times, share) if times else None
    return row | {f"wall_p{share}_ms": percentile(walls, share) for share in (50, 95, 99)}


def _indexes(rig: Rig, action: str, result: Result) -> bool:
    try:
        manage(rig.settings, "strategy_indexes", action)
        return True
    except ServiceError as error:
        result.notes.append(f"The indexes of the strategies are missing ({error}).")
        return False


def _verdicts(rig: Rig, result: Result) -> None:
    """Add the verdicts of `manage.py explain_lookup` on the plans of the strategies."""
    try:
        output = manage(rig.settings, "explain_lookup", "--global-tag", rig.sizes.largest, "--json").output
        result.tables.append(verdicts_table(json_in(output)))
    except (ServiceError, ValueError) as error:
        result.notes.append(f"Verdicts on the plans are not available ({error}).")


def json_in(output: str) -> Any:
    """The JSON document at the end of a command's output, after other lines. Raises `ValueError` if there is none."""
    lines = output.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(("[", "{"))]
    return json.loads("\n".join(lines[starts[0] :] if starts else []))


def verdicts_table(document: Any) -> Table:
    """A table of a list of objects, or of the first such list in an object. Raises `ValueError` if there is none."""
    candidates = [document, *(document.values() if isinstance(document, dict) else [])]
    for rows in candidates:
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
            plain = [key for key, value in rows[0].items() if not isinstance(value, dict | list)]
            columns = tuple(key for key in VERDICT if key in plain) or tuple(plain)
            return Table("Plans", columns, [tuple(row.get(column) for column in columns) for row in rows])
    raise ValueError("the document has no list of verdicts")


def _show(rig: Rig, result: Result) -> None:
    if not any(row["db_p50_ms"] is not None for row in result.raw):
        result.notes.append(
            "Database time is not available: responses have no Server-Timing. The plots show whole responses instead."
        )
    result.tables.insert(0, table("All combinations", result.raw, KEYS))
    result.plots += _by_size(result.raw)
    for scenario in dict.fromkeys(row["scenario"] for row in result.raw):
        result.plots += _plots(result.raw, scenario)
    loaded = [row for row in result.raw if "answers" in row]
    result.tables.append(table("What whole responses cost", loaded, f"strategy scenario pattern {COSTS}"))


def _by_size(rows: list[dict[str, Any]]) -> list[plots.Plot]:
    """A plot of each strategy's time against the number of IOVs, if there is more than one scenario."""
    key, what = ("db_p50_ms", "database time") if rows[0]["db_p50_ms"] is not None else ("wall_p50_ms", "response")
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["pattern"] == "random":
            series.setdefault(row["strategy"], []).append((SCENARIOS[row["scenario"]].iovs, row[key]))
    if min(map(len, series.values())) < 2:
        return []
    title = f"Random moments: median {what} by the size of the tag"
    return [plots.lines(title, series, x="IOVs in the tag", y="ms", log_x=True, log_y=True)]


def _plots(rows: list[dict[str, Any]], scenario: str) -> list[plots.Plot]:
    chosen = [row for row in rows if row["scenario"] == scenario and row["pattern"] == "random"]
    source, what = ("db", "database time") if chosen[0]["db_p50_ms"] is not None else ("wall", "response, one client")
    times = {row["strategy"]: tuple(row[f"{source}_p{share}_ms"] for share in (50, 95, 99)) for row in chosen}
    return [plots.percentiles(f"{scenario}, random moments: {what}", times, x="ms")]
