"""Reading /metrics of the service, and arithmetic on its samples."""

import http.client
import re
import urllib.request
from collections import defaultdict
from collections.abc import Collection, Mapping

from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_SECONDS = 10
# The labels of routes that monitoring and this test harness request. They are not part of the load.
WATCHING = ('route="/metrics', 'route="/health/')


def read(url: str, seconds: float = TIMEOUT_SECONDS) -> dict[str, float]:
    """Every sample of `/metrics` by its name and labels; empty if /metrics cannot be read within the timeout.

    The names are as Prometheus writes them, `name{label="value",…}`, with sorted labels.
    """
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=seconds) as response:  # noqa: S310
            families = list(text_string_to_metric_families(response.read().decode()))
    # ValueError: the body is not in the format of Prometheus, for instance the login page of a proxy.
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    samples = {}
    for sample in (sample for family in families for sample in family.samples):
        labels = ",".join(f'{key}="{value}"' for key, value in sorted(sample.labels.items()))
        samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return samples


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """The difference of each sample that changed; empty if one side is unknown."""
    if not before or not after:
        return {}
    return {name: value - before.get(name, 0.0) for name, value in after.items() if value != before.get(name, 0.0)}


def total(counters: Mapping[str, float], name: str, *, of: str = "", without: Collection[str] = ()) -> float:
    """The sum of a metric over all labels, or over those samples whose labels contain `of` and none of `without`."""
    found = {key: value for key, value in counters.items() if key == name or key.startswith(f"{name}{{")}
    return sum(value for key, value in found.items() if of in key and not any(text in key for text in without))


def by_label(counters: Mapping[str, float], name: str, label: str) -> dict[str, float]:
    """The sums of a metric by the value of one label."""
    wanted = re.compile(rf'[{{,]{label}="([^"]*)"')
    sums: dict[str, float] = defaultdict(float)
    for key, value in counters.items():
        if key.startswith(f"{name}{{") and (found := wanted.search(key)):
            sums[found[1]] += value
    return dict(sums)
