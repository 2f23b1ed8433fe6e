"""The definitions of the scenarios, with the sizes of the load study (docs/load-tests.md)."""

from dataclasses import dataclass

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@dataclass(frozen=True)
class Scenario:
    """A global tag of a certain size. By default, the tag has the name of the scenario.

    `update_seconds` is the mean time between updates of the payload types that change most often. Only the layout
    `realistic` uses it.
    """

    name: str
    payload_types: int
    iovs_per_type: int
    update_seconds: int
    description: str

    @property
    def iovs(self) -> int:
        """The total number of IOVs."""
        return self.payload_types * self.iovs_per_type


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("tiny", 10, 10, DAY, "small enough to inspect by hand"),
        Scenario("tiny-moderate", 10, 200, DAY, "few types, some history"),
        Scenario("moderate", 100, 200, DAY, "daily updates for more than half a year"),
        Scenario("heavy-usage", 100, 5_000, HOUR, "hourly updates for more than half a year"),
        Scenario("worst-case", 200, 26_000, 10 * MINUTE, "updates every ten minutes for half a year"),
    )
}

_DETECTORS = (
    "Pixel", "SiliconStrip", "DriftChamber", "TimeProjection", "TransitionRadiation", "TimeOfFlight", "Cherenkov",
    "ElectromagneticCalorimeter", "HadronicCalorimeter", "ZeroDegreeCalorimeter", "Muon", "Luminosity", "Trigger",
    "Beam", "Magnet", "Solenoid", "EventPlane", "MinimumBias", "Preshower", "Veto",
)  # fmt: skip
_QUANTITIES = (
    "Alignment", "Gain", "Pedestal", "Noise", "DeadChannels", "TimeOffset", "HighVoltage", "Temperature", "Mapping",
    "DriftVelocity",
)  # fmt: skip


def payload_type_names(count: int) -> list[str]:
    """The names of the first `count` payload types, the same in every scenario. `count` must be at most 200."""
    names = [f"{detector}_{quantity}" for quantity in _QUANTITIES for detector in _DETECTORS]
    return names[:count]
