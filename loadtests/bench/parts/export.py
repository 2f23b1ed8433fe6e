"""Streaming export compared with psql's COPY of the same rows, its memory, and its effect on lookups."""

import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from cdb.embedded import postgres_binaries
from cdb_rest import named_sql
from loadtests import usage
from loadtests.bench.rig import LOADED, Rig, table
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, running
from loadtests.wrk import MissingProgramError

TITLE = "Export"
CONNECTIONS = 4
PSQL = "psql COPY to a file"
HTTP = {"csv": "over HTTP to a file, CSV", "jsonl": "over HTTP to a file, JSON lines"}
INTRO = (
    "The whole largest tag by curl to a file, and the same rows by COPY in psql to a file, alternately. First byte is the time "
    "since the request. Memory is the resident memory of the largest gunicorn worker."
)


def measure(rig: Rig) -> Result:
    """Measure exports in rounds; then lookups during an export."""
    if shutil.which("curl") is None:
        raise MissingProgramError("curl is not installed (apt-get install curl)")
    result = Result("export", TITLE, INTRO)
    tag = rig.sizes.largest
    rig.seed(tag)
    file = rig.data / "export.file"
    try:
        with running(rig.settings) as service:
            rig.warm_up(service, tag)
            for number in range(1, rig.sizes.clone_rounds + 1):
                rig.say(f"export: {tag}, round {number} of {rig.sizes.clone_rounds}")
                result.raw.append({"round": number, "what": PSQL, "seconds": _psql(rig, tag, file)})
                for form, what in HTTP.items():
                    result.raw.append({"round": number, "what": what, **_over_http(service, tag, form, file)})
            _show(result, tag)
            _lookups_beside(rig, service, tag, result)
    finally:
        file.unlink(missing_ok=True)
    return result


def _psql(rig: Rig, tag: str, file: Path) -> float:
    """Export the rows with psql; returns seconds."""
    tag_id = rig.database.value('SELECT id FROM "GlobalTag" WHERE name = %s', (tag,))
    always = {"tag_id": tag_id, "payload_type_id": None, "since": 0, "since_major": 0, "since_minor": 0, "until": 2**63}
    rows = named_sql.load("export_csv").replace("{rows}", named_sql.load("export_rows"))
    with rig.database.connect() as connection, connection.cursor() as cursor:
        settings = cursor.mogrify(named_sql.load("export_settings"), {"milliseconds": "0"}).decode()
        statement = cursor.mogrify(rows, always | {"inclusive": False}).decode()
    script = f"BEGIN;\n\\o /dev/null\n{settings};\n\\o {file}\n{statement};\n"
    begin = time.perf_counter()
    subprocess.run(
        [str(postgres_binaries.BINARIES / "psql"), "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", rig.database.url],
        input=script, text=True, check=True, env=postgres_binaries.ENVIRONMENT, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - begin


def _over_http(service: Service, tag: str, form: str, file: Path) -> dict[str, Any]:
    """Export the rows over HTTP; returns seconds, bytes, and the memory of a worker in MiB."""
    gunicorn = service.gunicorn()
    with usage.peak_of(lambda: usage.largest_worker(gunicorn)) as peak:
        begin = time.perf_counter()
        first = _curl(service, tag, form, file)
        seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "first_byte_seconds": first,
        "bytes": file.stat().st_size,
        "worker_before_mib": peak.first / 2**20,
        "worker_peak_mib": peak.most / 2**20,
    }


def _curl(service: Service, tag: str, form: str, file: Path) -> float:
    """Export to a file with curl; returns the seconds until the first byte.

    Raises `RuntimeError` if the export fails.
    """
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--fail", "--output", str(file), "--write-out", "%{time_starttransfer}",
         service.url(f"global-tags/{tag}/export?format={form}")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the export failed: {done.stderr.strip()}")
    return float(done.stdout)


def _lookups_beside(rig: Rig, service: Service, tag: str, result: Result) -> None:
    """Measure lookups without other load, and during a series of exports."""
    rig.say(f"export: lookups in {tag} beside an export")
    url, seconds = service.lookup_url(tag), rig.sizes.look_seconds
    rows = [{"export": "without", **rig.load(service, url, connections=CONNECTIONS, seconds=seconds)}]
    ended = threading.Event()
    failures: list[Exception] = []

    def export() -> None:
        while not ended.is_set():
            try:
                _curl(service, tag, "csv", Path("/dev/null"))
            except Exception as error:
                failures.append(error)
                return

    exporting = threading.Thread(target=export, daemon=True)
    exporting.start()
    rows.append({"export": "with", **rig.load(service, url, connections=CONNECTIONS, seconds=seconds)})
    ended.set()
    exporting.join()
    if failures:
        raise failures[0]
    title = f"Lookups in {tag}, {CONNECTIONS} connections, {seconds} s"
    result.tables.append(table(title, rows, f"export {LOADED} max_ms others_cpu_percent"))
    result.raw += [{"what": f"lookups, {row['export']} an export", **row} for row in rows]


def _show(result: Result, tag: str) -> None:
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in result.raw:
        by_name.setdefault(row["what"], []).append(row)
    spreads = {what: Spread.of([row["seconds"] for row in rows]) for what, rows in by_name.items()}
    exports = [row for row in result.raw if row["what"] != PSQL]
    copied = spreads[PSQL].median
    result.targets += [
        Target(f"speed of exporting {tag} ÷ psql COPY", ratio(copied, spreads[HTTP["csv"]].median), 0.7, at_most=False),
        Target("first byte", max(row["first_byte_seconds"] for row in exports), 1, at_most=True, unit="s"),
        Target(
            "peak memory of a worker", max(row["worker_peak_mib"] for row in exports), 100, at_most=True, unit="MiB"
        ),
    ]
    rows = [
        (what, one.median, one.low, one.high, ratio(copied, one.median),
         max(row.get("first_byte_seconds", 0) for row in by_name[what]) or None,
         max(row.get("worker_peak_mib", 0) for row in by_name[what]) or None)
        for what, one in spreads.items()
    ]  # fmt: skip
    columns = ("what", "median s", "least s", "most s", "speed ÷ psql", "latest first byte s", "peak memory MiB")
    result.tables.append(Table(tag, columns, rows))
    result.plots.append(plots.bars(f"Export of {tag}: seconds", spreads, x="seconds"))
