"""The lookup strategies by scenario and pattern: database time, whole responses, and plans.

This is the campaign `endpoints` of `make load` for each scenario and pattern of the bench, each measured once. Patterns:
first is the moment (0, 0), random is uniform in 0…2^31-1, last is (2^31-1, 2^31-1). At the first moment nothing is valid, so
that first returns no rows.
"""

import json
import re

from loadtests.bench.harness import Harness
from loadtests.campaigns import endpoints
from loadtests.campaigns.closed import PATTERNS
from loadtests.reporting.result import Result, Table
from loadtests.service import manage

TITLE = "Strategies"
PLAN = "strategy scan index condition rows_read rows_removed heap_fetches buffers rows planning_ms execution_ms"


def measure(harness: Harness, result: Result) -> None:
    """Run the campaign on the data of the bench, and explain the lookups in the largest tag."""
    sizes = harness.sizes
    patterns, clients = (("random",), 2) if sizes.too_small else (PATTERNS, 8)
    how = {"clients": clients, "seconds": sizes.strategy_seconds, "repetitions": 1}
    with harness.stage() as stage:
        result.add(endpoints.compare(stage, sizes.strategy_scenarios, patterns, **how), "strategies: ")
    try:
        manage(harness.settings, "strategy_indexes", "create")
        plans = manage(harness.settings, "explain_lookup", "--global-tag", sizes.largest, "--json").output
    finally:
        manage(harness.settings, "strategy_indexes", "drop")
    # After warnings, which are on lines of their own.
    document = json.loads(plans[re.search(r"^\[", plans, re.MULTILINE).start() :])
    result.tables.append(Table.of("Plans", document, {name: name for name in PLAN.split()}))
