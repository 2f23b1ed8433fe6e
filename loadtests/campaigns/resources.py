"""The rules that decide from the signals of a run which resource ran out."""

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.campaigns.watched import Watched

# The share of a core, or of all cores, that counts as exhausted.
BUSY = 0.9
# The share of all cores that programs outside of the test may use.
OTHER_PROGRAMS = 0.2
# The share of a limit on connections or threads that counts as exhausted.
AT_LIMIT = 0.95
QUEUE_MS = 20.0
MEMORY_FULL = 0.95
GROWN = 1.5
LEAST_GROWN = {"memory": 200e6, "files": 200.0}

NOTHING = "nothing that was watched"


@dataclass(frozen=True)
class Evidence:
    """The evaluation of one rule.

    The resource ran out if `measured` (None: unknown) reaches `bound` and the rule `applies`. A `void` rule
    means that the test and not the service reached its limit.
    """

    resource: str
    measured: float | None
    bound: float
    unit: str
    remark: str = ""
    void: bool = False
    applies: bool = True

    @property
    def ran_out(self) -> bool:
        """Whether the value has reached the bound, and the rule applies."""
        return self.applies and self.measured is not None and self.measured >= self.bound


@dataclass(frozen=True)
class Verdict:
    """The resource that ran out, and the evidence of all rules in their order."""

    resource: str
    remark: str
    void: bool
    evidence: tuple[Evidence, ...]


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _generator(watched: Watched) -> Evidence:
    remark = "it would handle responses late: use --processes, or other machines"
    return Evidence("the generator, not the service", watched.generator(), BUSY, "of one core", remark, void=True)


def _other_programs(watched: Watched) -> Evidence:
    """Applies at any load: means do not show whether other programs used a processor when it was needed."""
    share = _share(watched.cpu("other"), watched.cores)
    remark = "programs that are not part of the test: measure again without them"
    return Evidence("other programs on this machine", share, OTHER_PROGRAMS, "of all cores", remark, void=True)


def _processors(watched: Watched) -> Evidence:
    used = ", ".join(f"{name} {cores:.2f}" for name, cores in watched.programs().items())
    most = next(iter(watched.programs()), "")
    resource = f"the machine's processors, most of it {most}" if most else "the machine's processors"
    return Evidence(
        resource, _share(watched.mean("cpu.machine"), watched.cores), BUSY, "of all cores", f"cores: {used}"
    )


def _locks(watched: Watched) -> Evidence:
    """The sessions that wait for each other as a share of active ones; applies if at least one waits on average."""
    waits = {name: watched.mean(f"waits.{name}") or 0.0 for name in watched.names("waits.")}
    locks = {name: count for name, count in waits.items() if name.startswith(("Lock:", "LWLock:", "BufferPin:"))}
    most, waiting = max(locks, key=locks.__getitem__, default=""), sum(locks.values())
    share = _share(waiting, watched.mean("connections.active"))
    return Evidence("locks in PostgreSQL", share, 0.5, "of its sessions at work", most, applies=waiting >= 1)


def _pgbouncer(watched: Watched) -> Evidence:
    return Evidence("the one core of PgBouncer", watched.cpu("pgbouncer"), BUSY, "of one core")


def _gunicorn(watched: Watched) -> Evidence:
    processes = watched.mean("processes.gunicorn-lookups")
    # The master does not serve requests.
    share = _share(watched.cpu("gunicorn-lookups"), processes and processes - 1)
    remark = "a Python process uses one core: raise CDB_WORKERS"
    return Evidence("gunicorn's processes", share, BUSY, "of one core each", remark)


def _disk(watched: Watched) -> Evidence:
    waits = sum(watched.mean(f"waits.{name}") or 0.0 for name in watched.names("waits.") if name.startswith("IO:"))
    return Evidence("the disk", watched.mean("disk.busy"), BUSY, "of the time", f"{waits:.1f} sessions wait for it")


def _pool(watched: Watched) -> Evidence:
    """Clients wait only while all connections of their pool are in use."""
    used = watched.mean("pgbouncer.servers.active") or 0.0
    limit = watched.sum(*(f"pool_size.{name}" for name in watched.names("pool_size."))) or 0.0
    remark = f"{used:.0f} of {limit:.0f} connections in use"
    waiting = watched.mean("pgbouncer.clients.waiting")
    return Evidence("PgBouncer's pool of connections", waiting, 1.0, "clients wait for one", remark)


def _connections(watched: Watched) -> Evidence:
    used = watched.sum(*(f"connections.{name}" for name in watched.names("connections.")))
    return Evidence(
        "PostgreSQL's connections", _share(used, watched.mean("connection_limit")), AT_LIMIT, "of max_connections"
    )


def _threads(watched: Watched) -> Evidence:
    """Applies only if requests wait for a thread or are refused."""
    share = _share(watched.mean("in_progress.lookups"), watched.mean("thread_limit.lookups"))
    waited, refused = watched.mean("queue_ms.lookups") or 0.0, watched.mean("refusals.lookups") or 0.0
    remark = f"requests waited {waited:.0f} ms for one, {refused:.1f}/s were refused"
    queued = waited >= QUEUE_MS or refused > 0
    return Evidence("gunicorn's threads", share, AT_LIMIT, "of CDB_THREADS", remark, applies=queued)


def _memory(watched: Watched) -> Evidence:
    return Evidence("memory", _share(watched.mean("memory.machine"), watched.memory), MEMORY_FULL, "of the machine's")


def _growing(watched: Watched, kind: str, resource: str) -> Evidence:
    """The program of the service that grew most, by the last third of the window ÷ the first third."""
    grown, most = None, ""
    for name in watched.names(f"{kind}."):
        ends = None if name in ("machine", "generator", "rig") else watched.growth(f"{kind}.{name}")
        if ends is None:
            continue
        ratio = ends[1] / ends[0] if ends[0] and ends[1] - ends[0] >= LEAST_GROWN[kind] else 1.0
        if grown is None or ratio > grown:
            grown, most = ratio, name
    return Evidence(resource, grown, GROWN, "times as much as before", most)


RULES: tuple[Callable[[Watched], Evidence], ...] = (
    # Causes come before consequences: if processors are exhausted, threads and connections are all in use as well.
    _generator,
    _other_programs,
    _processors,
    _locks,
    _pgbouncer,
    _gunicorn,
    _disk,
    _pool,
    _connections,
    _threads,
    _memory,
    lambda watched: _growing(watched, "memory", "memory that grows"),
    lambda watched: _growing(watched, "files", "descriptors that grow"),
)


def decide(watched: Watched, *, only_late: bool = False) -> Verdict:
    """The verdict of the first rule whose resource ran out.

    `only_late` means that the rate was not sustained only because the generator was late; without an exhausted
    resource the verdict is then void.
    """
    evidence = tuple(rule(watched) for rule in RULES)
    for one in evidence:
        if one.ran_out:
            return Verdict(one.resource, one.remark, one.void, evidence)
    if only_late:
        return Verdict("the generator, not the service", "it was late, with processors to spare", True, evidence)
    return Verdict(NOTHING, "", False, evidence)
