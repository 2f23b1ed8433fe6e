"""nginx's connections, from its module stub_status."""

import re
import urllib.request

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from cdb_rest.metrics.slots import here

SECONDS = 1
STATES = ("reading", "writing", "waiting")
# nginx is asked itself, whatever proxy the environment names.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def read() -> list[Metric]:
    """nginx's connections by state, and how many there were. Raises `OSError` where it does not answer."""
    if here.nginx is None:
        raise FileNotFoundError("there is no nginx around this process")
    with _open(here.nginx, timeout=SECONDS) as answer:
        numbers = [int(found) for found in re.findall(r"\d+", answer.read(1000).decode())]
    _active, accepted, handled, requests, *by_state = numbers
    connections = GaugeMetricFamily(
        "cdb_nginx_connections",
        "Connections of clients: a request is read, an answer is made or written, or they are idle.",
        labels=["state"],
    )
    for state, number in zip(STATES, by_state, strict=True):
        connections.add_metric([state], number)
    return [
        connections,
        CounterMetricFamily("cdb_nginx_accepted", "Connections that nginx has accepted.", accepted),
        CounterMetricFamily(
            "cdb_nginx_dropped", "Connections that it closed at once, for want of places.", accepted - handled
        ),
        CounterMetricFamily("cdb_nginx_requests", "Requests that nginx has read, its own status among them.", requests),
    ]
