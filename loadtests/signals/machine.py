"""Processors, memory, disks and network of the whole machine."""

import time

import psutil

from loadtests import usage


class Machine:
    """Columns about the whole machine."""

    def __init__(self) -> None:
        self._before: dict[str, float] = {}
        self._when = 0.0

    def read(self) -> dict[str, float]:
        """The used memory, `memory.machine` in bytes, and rates since the last call (none at the first call).

        In cores: `cpu.machine`, of which `machine.user` and `machine.system`, and `machine.waiting`, idle time
        in which a processor waited for disks. In bytes per second: `disk.read`, `disk.write`, `network.sent`,
        `network.received`. `disk.busy` is the share of time in which the busiest disk was active.
        """
        totals, now = _totals(), time.monotonic()
        before, seconds = self._before, now - self._when
        self._before, self._when = totals, now
        rates = {name: (value - before[name]) / seconds for name, value in totals.items() if name in before}
        busy = [rates.pop(name) for name in list(rates) if name.startswith("busy.")]
        memory = psutil.virtual_memory()
        return rates | ({"disk.busy": max(busy)} if busy else {}) | {"memory.machine": memory.total - memory.available}


def _totals() -> dict[str, float]:
    times = psutil.cpu_times()
    totals = {
        "cpu.machine": usage.whole_cpu(),
        "machine.user": times.user + getattr(times, "nice", 0.0),
        "machine.waiting": getattr(times, "iowait", 0.0),
    }
    totals["machine.system"] = totals["cpu.machine"] - totals["machine.user"]
    if disks := psutil.disk_io_counters():
        totals |= {"disk.read": disks.read_bytes, "disk.write": disks.write_bytes}
    for name, disk in (psutil.disk_io_counters(perdisk=True) or {}).items():
        totals[f"busy.{name}"] = getattr(disk, "busy_time", 0) / 1000
    if network := psutil.net_io_counters():
        totals |= {"network.sent": network.bytes_sent, "network.received": network.bytes_recv}
    return totals


def others(columns: dict[str, float]) -> dict[str, float]:
    """The CPU of all other programs, `cpu.other.user` and `.system` in cores.

    Empty if the CPU of the machine is unknown.
    """
    if "cpu.machine" not in columns:
        return {}
    left = {}
    for kind in ("user", "system"):
        known = sum(value for name, value in columns.items() if name.startswith("cpu.") and name.endswith(f".{kind}"))
        left[f"cpu.other.{kind}"] = max(0.0, columns[f"machine.{kind}"] - known)
    return left
