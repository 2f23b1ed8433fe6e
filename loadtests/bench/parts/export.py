"""Streaming export compared with psql's COPY of the same rows, its memory, and its effect on lookups.

The whole largest tag by curl to a file, and the same rows by COPY in psql to a file, alternately. First byte is the time
since the request. Memory is the resident memory of the largest gunicorn worker.
"""

import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from cdb.embedded import postgres_binaries
from cdb_rest import named_sql
from loadtests import usage
from loadtests.bench.harness import Harness
from loadtests.reporting import plots
from loadtests.reporting.figures import grouped, ratio, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, ServiceError, checked, run_to_end, running

TITLE = "Export"
PSQL = "psql COPY to a file"
HTTP = {"csv": "over HTTP to a file, CSV", "jsonl": "over HTTP to a file, JSON lines"}


def measure(harness: Harness, result: Result) -> None:
    """Measure exports in rounds; then lookups during an export."""
    if shutil.which("curl") is None:
        raise ServiceError("curl is not installed (apt-get install curl)")
    tag, file = harness.sizes.largest, harness.data / "export.file"
    harness.seed(tag)
    try:
        with running(harness.settings) as service:
            harness.warm_up(service, tag)
            for number in range(1, harness.sizes.clone_rounds + 1):
                harness.say(f"export: {tag}, round {number} of {harness.sizes.clone_rounds}")
                result.raw.append({"round": number, "what": PSQL, "seconds": _psql(harness, tag, file)})
                for form, what in HTTP.items():
                    result.raw.append({"round": number, "what": what, **_over_http(service, tag, form, file)})
            _show(result, tag)

            def export(over: threading.Event) -> None:
                while not over.is_set():
                    _curl(service, tag, "csv", Path("/dev/null"))

            harness.lookups_beside(result, service, tag, "exports", harness.sizes.look_seconds, export)
    finally:
        file.unlink(missing_ok=True)


def _psql(harness: Harness, tag: str, file: Path) -> float:
    """Export the rows with psql; returns seconds."""
    tag_id = harness.database.value('SELECT id FROM "GlobalTag" WHERE name = %s', (tag,))
    always = {"tag_id": tag_id, "payload_type_id": None, "since": 0, "since_major": 0, "since_minor": 0, "until": 2**63}
    rows = named_sql.load("export_csv").replace("{rows}", named_sql.load("export_rows"))
    with harness.database.connect() as connection, connection.cursor() as cursor:
        settings = cursor.mogrify(named_sql.load("export_settings"), {"milliseconds": "0"}).decode()
        statement = cursor.mogrify(rows, always | {"inclusive": False}).decode()
    psql = [str(postgres_binaries.BINARIES / "psql"), "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(f"BEGIN;\n\\o /dev/null\n{settings};\n\\o {file}\n{statement};\n")
        script.flush()
        command = [*psql, "--file", script.name, harness.database.url]
        return checked(run_to_end(command, postgres_binaries.ENVIRONMENT), "psql").seconds


def _over_http(service: Service, tag: str, form: str, file: Path) -> dict[str, Any]:
    """Export the rows over HTTP; returns seconds, bytes, and the memory of a worker in MiB."""
    with usage.peak_of_workers(service.gunicorn()) as memory:
        begin = time.perf_counter()
        first = _curl(service, tag, form, file)
        seconds = time.perf_counter() - begin
    return {"seconds": seconds, "first_byte_seconds": first, "bytes": file.stat().st_size, **memory}


def _curl(service: Service, tag: str, form: str, file: Path) -> float:
    """Export to a file with curl; returns the seconds until the first byte."""
    url = service.url(f"global-tags/{tag}/export?format={form}")
    options = ["--silent", "--show-error", "--fail", "--output", str(file), "--write-out", "%{time_starttransfer}"]
    return float(checked(run_to_end(["curl", *options, url]), "curl").output)


def _show(result: Result, tag: str) -> None:
    found, rows = spreads(result.raw, "what", "seconds"), []
    for what, group in grouped(result.raw, "what").items():
        row = {"what": what, **vars(found[what]), "ratio": ratio(found[PSQL].median, found[what].median)}
        for key in ("first_byte_seconds", "worker_peak_mib"):
            row[key] = max(one.get(key, 0) for one in group) or None
        rows.append(row)
    keys = "what median low high ratio first_byte_seconds worker_peak_mib"
    headings = {"ratio": "speed ÷ psql", "first_byte_seconds": "latest first byte s"}
    result.tables.append(Table.of(tag, rows, keys, **headings))
    result.plots.append(plots.bars(f"Export of {tag}: seconds", found, x="seconds"))
    _, csv, _ = rows
    first, memory = (max(row[key] for row in rows[1:]) for key in ("first_byte_seconds", "worker_peak_mib"))
    result.targets += [
        Target(f"speed of exporting {tag} ÷ psql COPY", csv["ratio"], 0.7, at_most=False),
        Target("first byte", first, 1, at_most=True, unit="s"),
        Target("peak memory of a worker", memory, 100, at_most=True, unit="MiB"),
    ]
