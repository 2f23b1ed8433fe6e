"""The service's own counts, as it tells Prometheus."""

import http.client
import re
import urllib.request
from collections import defaultdict
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_SECONDS = 10


def read(url: str, seconds: float = TIMEOUT_SECONDS) -> dict[str, float]:
    """Every sample of `/metrics` by its name and labels; empty where the service does not tell us, or not in time."""
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=seconds) as answer:  # noqa: S310
            text = answer.read().decode()
        return {
            sample_name(sample.name, sample.labels): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    # `ValueError` is for what is no metrics: in front of a deployment something else may answer, such as a page to log in.
    except (OSError, http.client.HTTPException, ValueError):
        return {}


def sample_name(name: str, labels: Mapping[str, str] | None = None) -> str:
    """A sample as Prometheus writes it: `name{label="value",…}`, labels by name."""
    inside = ",".join(f'{key}="{value}"' for key, value in sorted((labels or {}).items()))
    return f"{name}{{{inside}}}" if inside else name


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """By how much each sample rose or fell, where it changed; empty where one side is not known."""
    if not before or not after:
        return {}
    return {name: value - before.get(name, 0.0) for name, value in after.items() if value != before.get(name, 0.0)}


def total(counters: Mapping[str, float], name: str) -> float:
    """The sum over all labels of a metric."""
    return sum(value for key, value in counters.items() if key == name or key.startswith(f"{name}{{"))


def by_label(counters: Mapping[str, float], name: str, label: str) -> dict[str, float]:
    """The sums over all other labels of a metric, by the value of this one."""
    wanted = re.compile(rf'[{{,]{label}="([^"]*)"')
    sums: dict[str, float] = defaultdict(float)
    for key, value in counters.items():
        if key.startswith(f"{name}{{") and (found := wanted.search(key)):
            sums[found[1]] += value
    return dict(sums)
