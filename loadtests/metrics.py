"""Reading /metrics of the service, and arithmetic on its samples."""

import http.client
import re
import urllib.request
from collections import defaultdict
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_SECONDS = 10


def read(url: str, seconds: float = TIMEOUT_SECONDS) -> dict[str, float]:
    """Every sample of `/metrics` by its name and labels; empty if /metrics cannot be read within the timeout."""
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=seconds) as response:  # noqa: S310
            text = response.read().decode()
        return {
            sample_name(sample.name, sample.labels): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    # ValueError: the body is not in the format of Prometheus, for instance the login page of a proxy.
    except (OSError, http.client.HTTPException, ValueError):
        return {}


def sample_name(name: str, labels: Mapping[str, str] | None = None) -> str:
    """The name of a sample as Prometheus writes it: `name{label="value",…}`, with sorted labels."""
    inside = ",".join(f'{key}="{value}"' for key, value in sorted((labels or {}).items()))
    return f"{name}{{{inside}}}" if inside else name


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """The difference of each sample that changed; empty if one side is unknown."""
    if not before or not after:
        return {}
    return {name: value - before.get(name, 0.0) for name, value in after.items() if value != before.get(name, 0.0)}


def total(counters: Mapping[str, float], name: str) -> float:
    """The sum of a metric over all labels."""
    return sum(value for key, value in counters.items() if key == name or key.startswith(f"{name}{{"))


def by_label(counters: Mapping[str, float], name: str, label: str) -> dict[str, float]:
    """The sums of a metric by the value of one label."""
    wanted = re.compile(rf'[{{,]{label}="([^"]*)"')
    sums: dict[str, float] = defaultdict(float)
    for key, value in counters.items():
        if key.startswith(f"{name}{{") and (found := wanted.search(key)):
            sums[found[1]] += value
    return dict(sums)
