"""Streaming export compared with psql's COPY of the same rows, its memory, and its effect on lookups.

The whole largest tag by curl to a file, and the same rows by COPY in psql to a file, alternately. First byte is the time
since the request. Memory is the resident memory of the largest process of granian.
"""

import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from cdb.embedded import binaries
from cdb_rest import named_sql
from loadtests import usage
from loadtests.bench.harness import Harness, compare_seconds
from loadtests.reporting.result import Result, Target
from loadtests.service import Service, ServiceError, checked, run_to_end, running

TITLE = "Export"
PSQL = "psql COPY to a file"
CSV, JSON_LINES = "over HTTP to a file, CSV", "over HTTP to a file, JSON lines"


def measure(harness: Harness, result: Result) -> None:
    """Measure exports in rounds; then lookups during an export."""
    if shutil.which("curl") is None:
        raise ServiceError("curl is not installed (apt-get install curl)")
    tag, file = harness.sizes.largest, harness.data / "export.file"
    harness.seed(tag)
    rows: list[dict[str, Any]] = []
    try:
        with running(harness.settings) as service:
            harness.warm_up(service, tag)
            for number in range(1, harness.sizes.bulk_rounds + 1):
                harness.say(f"export: {tag}, round {number} of {harness.sizes.bulk_rounds}")
                rows.append({"round": number, "what": PSQL, "seconds": _psql(harness, tag, file)})
                for form, what in (("csv", CSV), ("jsonl", JSON_LINES)):
                    rows.append({"round": number, "what": what, **_over_http(service, tag, form, file)})
            ratios = compare_seconds(result, f"Export of {tag}", rows, PSQL, "first_byte_s", "worker_peak_mib")
            result.raw += rows

            def export(over: threading.Event) -> None:
                while not over.is_set():
                    _curl(service, tag, "csv", Path("/dev/null"))

            harness.lookups_beside(result, service, tag, "exports", harness.sizes.look_seconds, export)
    finally:
        file.unlink(missing_ok=True)
    first, memory = (max(row.get(key, 0) for row in rows) for key in ("first_byte_s", "worker_peak_mib"))
    result.targets += [
        Target(f"export of {tag}, CSV ÷ psql COPY", ratios[CSV], 1.4, at_most=True),
        Target("first byte", first, 1, at_most=True, unit="s"),
        Target("peak memory of a worker", memory, 100, at_most=True, unit="MiB"),
    ]


def _psql(harness: Harness, tag: str, file: Path) -> float:
    """Export the rows with psql; returns seconds."""
    tag_id = harness.database.value('SELECT id FROM "GlobalTag" WHERE name = %s', (tag,))
    always = {"tag_id": tag_id, "payload_type_id": None, "since": 0, "since_major": 0, "since_minor": 0, "until": 2**63}
    rows = named_sql.load("export_csv").replace("{rows}", named_sql.load("export_rows"))
    with harness.database.connect() as connection, connection.cursor() as cursor:
        settings = cursor.mogrify(named_sql.load("export_settings"), {"milliseconds": "0"}).decode()
        statement = cursor.mogrify(rows, always | {"inclusive": False}).decode()
    psql = [str(binaries.BINARIES / "psql"), "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(f"BEGIN;\n\\o /dev/null\n{settings};\n\\o {file}\n{statement};\n")
        script.flush()
        command = [*psql, "--file", script.name, harness.database.url]
        return checked(run_to_end(command, binaries.ENVIRONMENT), "psql").seconds


def _over_http(service: Service, tag: str, form: str, file: Path) -> dict[str, Any]:
    """Export the rows over HTTP; returns seconds, bytes, and the memory of a worker in MiB."""
    with usage.peak_of_workers(service.program("granian")) as memory:
        begin = time.perf_counter()
        first = _curl(service, tag, form, file)
        seconds = time.perf_counter() - begin
    return {"seconds": seconds, "first_byte_s": first, "bytes": file.stat().st_size, **memory}


def _curl(service: Service, tag: str, form: str, file: Path) -> float:
    """Export to a file with curl; returns the seconds until the first byte."""
    url = service.url(f"global-tags/{tag}/export?format={form}")
    options = ["--silent", "--show-error", "--fail", "--output", str(file), "--write-out", "%{time_starttransfer}"]
    return float(checked(run_to_end(["curl", *options, url]), "curl").output)
