"""nginx's connections, from its module stub_status."""

import re
import urllib.request

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from cdb_rest.metrics.slots import here

SECONDS = 1
STATES = ("reading", "writing", "waiting")
# Without proxies: the environment may name one.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def read() -> list[Metric]:
    """nginx's connections by state, and its counters.

    Raises `OSError` if nginx does not respond, or if this process runs without nginx.
    """
    if here.nginx is None:
        raise FileNotFoundError("this process runs without nginx")
    with _open(here.nginx, timeout=SECONDS) as response:
        numbers = [int(found) for found in re.findall(r"\d+", response.read(1000).decode())]
    _active, accepted, handled, requests, *by_state = numbers
    connections = GaugeMetricFamily(
        "cdb_nginx_connections",
        "Connections of clients by state: reading a request, writing a response, or idle.",
        labels=["state"],
    )
    for state, number in zip(STATES, by_state, strict=True):
        connections.add_metric([state], number)
    return [
        connections,
        CounterMetricFamily("cdb_nginx_accepted", "Connections that nginx has accepted.", accepted),
        CounterMetricFamily(
            "cdb_nginx_dropped",
            "Connections that nginx closed at once because it had no free slot.",
            accepted - handled,
        ),
        CounterMetricFamily(
            "cdb_nginx_requests", "Requests that nginx has read, including those for its own status.", requests
        ),
    ]
