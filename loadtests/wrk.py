"""The measuring loop: GET requests on some connections for some seconds, by wrk."""

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadtests.service import ServiceError, run_to_end

SCRIPT = Path(__file__).with_suffix(".lua")
TIMEOUT_SECONDS = 30


def measure(url: str, *, seconds: int, connections: int, lookups: bool = True, seed: int = 1) -> dict[str, Any]:
    """The responses per second (`rate`), times in ms (`p50`, `p99`, `max`), `requests`, `errors`, and `statuses` by number.

    With `lookups`, a random moment (0 to 2^31 - 1) is appended to the URL of each request. Raises `ServiceError` with its
    output if wrk fails, or if it is not installed.
    """
    if shutil.which("wrk") is None:
        raise ServiceError("wrk is not installed: apt-get install wrk")
    parts = urlsplit(url)
    # One thread can send more requests than the service can handle. More threads would take CPU time from the service.
    options = f"--threads 1 --connections {connections} --duration {seconds}s --timeout {TIMEOUT_SECONDS}s"
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    words = [target, "random" if lookups else "fixed", str(seed)]
    command = ["wrk", *options.split(), "--script", str(SCRIPT), f"{parts.scheme}://{parts.netloc}", "--", *words]
    finished = run_to_end(command)
    lines = [line for line in finished.output.splitlines() if line.startswith("REPORT ")]
    if not lines:
        raise ServiceError(f"wrk failed: {' '.join(finished.output.split())}")
    found = json.loads(lines[-1].removeprefix("REPORT "))
    found["statuses"] = {int(status): count for status, count in found["statuses"].items()}
    return found | {"rate": found["requests"] / max(found["seconds"], 0.001)}
