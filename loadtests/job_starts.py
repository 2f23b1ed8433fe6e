"""`python -m loadtests.job_starts`: jobs that start together and do what the C++ client does.

Each requests the list of global tags and then, if it got it, a lookup at a random moment, over a new connection each. The default
number is that of the requests of the busiest second of sPHENIX. Prints for each request the errors by status, and the times.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence

import numpy

from cdb_rest.management.quantities import AT_LEAST_ONE
from loadtests.burst import PATIENCE_SECONDS, exchange
from loadtests.client import check_reachable, lookup_path
from loadtests.content.moments import drawing
from loadtests.reporting.summaries import percentiles_of
from loadtests.service import PREFIX, ServiceError

CLIENTS = 2_503
STEPS = ("globalTags", "lookup")


def main(arguments: Sequence[str]) -> int:
    """Start the clients and print one line for each request. Returns 1 unless all got a response with status 200."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.job_starts", description=__doc__)
    parser.add_argument("--host", default="http://127.0.0.1:8000", help="address of the service (default: %(default)s)")
    parser.add_argument("--global-tag", default="tiny", help="tag of the lookups (default: %(default)s)")
    text = f"number of clients (default: {CLIENTS})"
    parser.add_argument("--clients", default=CLIENTS, help=text, **AT_LEAST_ONE)
    options = parser.parse_args(arguments)
    draw = drawing("random", source=random.Random(1))
    prefix = options.host.rstrip("/") + PREFIX
    urls = [
        (f"{prefix}globalTags", f"{prefix}{lookup_path(options.global_tag, draw())}") for _ in range(options.clients)
    ]
    try:
        check_reachable(options.host.rstrip("/"))
        clients, _ = exchange(options.host, urls, PATIENCE_SECONDS)
    except ServiceError as error:
        print(f"job_starts: {error}", file=sys.stderr)
        return 1
    for place, step in enumerate(STEPS):
        sent = [jobs[place] for jobs in clients if len(jobs) > place]
        counts = Counter(job.status for job in sent)
        errors = {status or "no response": count for status, count in counts.items() if status != 200}
        times = percentiles_of(numpy.array([1000 * (job.end - job.begin) for job in sent]))
        shown = ", ".join(f"{name[:-3]} {times[name] or 0:.0f} ms" for name in ("p50_ms", "p99_ms", "max_ms"))
        print(f"{step}: {len(sent):,} sent, {counts[200]:,} answered, errors {errors or 'none'}, {shown}")
    return 0 if all(len(jobs) == len(STEPS) and jobs[-1].status == 200 for jobs in clients) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
