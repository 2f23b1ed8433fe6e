"""The measuring loop: GET requests on some connections for some seconds, by wrk where it is installed."""

import json
import random
import shutil
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy

from loadtests.client import Client, DroppedError
from loadtests.service import PREFIX, run_to_end

SCRIPT = Path(__file__).with_suffix(".lua")
TIMEOUT_SECONDS = 30
MOMENTS = 2**31


def measure(url: str, *, seconds: int, connections: int, lookups: bool = True, seed: int = 1) -> dict[str, Any]:
    """The responses per second (`rate`), times in ms (`p50`, `p99`, `max`), `requests`, `errors`, and `statuses` by number.

    With `lookups`, a random moment (0 to 2^31 - 1) is appended to the URL of each request. Without wrk, threads of this process
    send the requests, which measures less than a fast service can do. Raises `RuntimeError` with its output if wrk fails.
    """
    if shutil.which("wrk") is None:
        return _measure_here(url, seconds, connections, lookups, seed)
    parts = urlsplit(url)
    # One thread can send more requests than the service can handle. More threads would take CPU time from the service.
    options = f"--threads 1 --connections {connections} --duration {seconds}s --timeout {TIMEOUT_SECONDS}s"
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    words = [target, "random" if lookups else "fixed", str(seed)]
    command = ["wrk", *options.split(), "--script", str(SCRIPT), f"{parts.scheme}://{parts.netloc}", "--", *words]
    finished = run_to_end(command)
    lines = [line for line in finished.output.splitlines() if line.startswith("REPORT ")]
    if not lines:
        raise RuntimeError(f"wrk failed: {' '.join(finished.output.split())}")
    found = json.loads(lines[-1].removeprefix("REPORT "))
    found["statuses"] = {int(status): count for status, count in found["statuses"].items()}
    return found | {"rate": found["requests"] / max(found["seconds"], 0.001)}


def _measure_here(url: str, seconds: int, connections: int, lookups: bool, seed: int) -> dict[str, Any]:
    parts, times, statuses = urlsplit(url), [], Counter()
    target, deadline = f"{parts.path}?{parts.query}".removeprefix(PREFIX), time.monotonic() + seconds

    def work(number: int) -> None:
        client, source = Client(f"{parts.scheme}://{parts.netloc}"), random.Random(seed * 1000 + number)
        while time.monotonic() < deadline:
            moment = f"&majorIOV={source.randrange(MOMENTS)}&minorIOV={source.randrange(MOMENTS)}"
            try:
                response = client.request("GET", target + (moment if lookups else ""))
            except DroppedError:
                statuses[0] += 1
                continue
            statuses[response.status] += 1
            times.append(response.ms)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p50, p99, most = numpy.percentile(times or [0], [50, 99, 100])
    errors = sum(count for status, count in statuses.items() if status != 200)
    found = {"requests": len(times), "seconds": seconds, "rate": len(times) / seconds, "errors": errors}
    return found | {"p50": p50, "p99": p99, "max": most, "statuses": dict(statuses)}
