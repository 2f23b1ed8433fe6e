"""The rules that decide from the signals of a step of load which resource is exhausted."""

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.campaigns.watched import Watched
from loadtests.reporting.figures import ratio

# The share of a core, of all cores or of the time that counts as exhausted.
BUSY = 0.9
# The share of PostgreSQL's active sessions that wait for locks.
WAITING = 0.5
# The share of all cores that programs outside of the test may use.
OTHER_PROGRAMS = 0.2
# The share of a limit on connections or threads that counts as exhausted.
AT_LIMIT = 0.95
QUEUE_MS = 20.0
MEMORY_FULL = 0.95
GROWN = 1.5

GENERATOR, NOTHING = "the generator, not the service", "nothing that was watched"


@dataclass(frozen=True)
class Evidence:
    """The evaluation of one rule.

    The resource is exhausted if `measured` (None: unknown) reaches `bound` and the rule `applies`. A `void` rule
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
    def is_exhausted(self) -> bool:
        """Whether the value has reached the bound, and the rule applies."""
        return self.applies and self.measured is not None and self.measured >= self.bound


@dataclass(frozen=True)
class Verdict:
    """The exhausted resource, and the evidence of all rules in their order."""

    resource: str
    remark: str
    void: bool
    evidence: tuple[Evidence, ...]


def _generator(watched: Watched) -> Evidence:
    remark = "it would handle responses late: use --processes, or other machines"
    return Evidence(GENERATOR, watched.generator(), BUSY, "of one core", remark, void=True)


def _other_programs(watched: Watched) -> Evidence:
    """The bound is low, because means do not show whether these programs used a processor when it was needed."""
    used, remark = (
        ratio(watched.cpu("other"), watched.cores),
        "programs that are not part of the test: measure again without them",
    )
    return Evidence("other programs on this machine", used, OTHER_PROGRAMS, "of all cores", remark, void=True)


def _processors(watched: Watched) -> Evidence:
    programs = watched.programs()
    most = next(iter(programs), "")
    remark = f"cores: {', '.join(f'{name} {used:.2f}' for name, used in programs.items())}"
    used = ratio(watched.mean("cpu.machine"), watched.cores)
    return Evidence(f"the machine's processors{most and f', most of it {most}'}", used, BUSY, "of all cores", remark)


def _locks(watched: Watched) -> Evidence:
    """Locks matter if at least one session waits for another on average."""
    waits = {
        name: count for name, count in watched.waits().items() if name.startswith(("Lock:", "LWLock:", "BufferPin:"))
    }
    waiting, most = sum(waits.values()), max(waits, key=waits.__getitem__, default="")
    share = ratio(waiting, watched.mean("connections.active"))
    return Evidence("locks in PostgreSQL", share, WAITING, "of its sessions at work", most, applies=waiting >= 1)


def _pooler(watched: Watched) -> Evidence:
    return Evidence("the one core of PgBouncer", watched.cpu("pgbouncer"), BUSY, "of one core")


def _gunicorn(watched: Watched) -> Evidence:
    # The master of gunicorn does not serve requests.
    workers = (watched.mean("processes.gunicorn-lookups") or 1) - 1
    used, remark = ratio(watched.cpu("gunicorn-lookups"), workers), "a Python process uses one core: raise CDB_WORKERS"
    return Evidence("gunicorn's processes", used, BUSY, "of one core each", remark)


def _disk(watched: Watched) -> Evidence:
    reads = sum(count for name, count in watched.waits().items() if name.startswith("IO:"))
    return Evidence("the disk", watched.mean("disk.busy"), BUSY, "of the time", f"{reads:.1f} sessions wait for it")


def _pool(watched: Watched) -> Evidence:
    """Clients wait only while all connections of their pool are in use."""
    used, size = watched.mean("pgbouncer.servers.active") or 0.0, watched.sum("pool_size.") or 0.0
    waiting, remark = watched.mean("pgbouncer.clients.waiting"), f"{used:.0f} of {size:.0f} connections in use"
    return Evidence("PgBouncer's pool of connections", waiting, 1.0, "clients wait for one", remark)


def _connections(watched: Watched) -> Evidence:
    used = ratio(watched.sum("connections."), watched.mean("connection_limit"))
    return Evidence("PostgreSQL's connections", used, AT_LIMIT, "of max_connections")


def _threads(watched: Watched) -> Evidence:
    """Threads matter if requests wait for one or are refused."""
    used = ratio(watched.mean("in_progress.lookups"), watched.mean("thread_limit.lookups"))
    queued, refused = watched.mean("queue_ms.lookups") or 0.0, watched.mean("refusals.lookups") or 0.0
    remark, applies = (
        f"requests waited {queued:.0f} ms for one, {refused:.1f}/s were refused",
        queued >= QUEUE_MS or refused > 0,
    )
    return Evidence("gunicorn's threads", used, AT_LIMIT, "of CDB_THREADS", remark, applies=applies)


def _memory(watched: Watched) -> Evidence:
    used = ratio(watched.mean("memory.machine"), watched.memory)
    return Evidence("memory", used, MEMORY_FULL, "of the machine's")


def _growing_memory(watched: Watched) -> Evidence:
    return Evidence("memory that grows", *_growth(watched, "memory"))


def _growing_files(watched: Watched) -> Evidence:
    return Evidence("descriptors that grow", *_growth(watched, "files"))


def _growth(watched: Watched, kind: str) -> tuple[float | None, float, str, str]:
    grown, program = watched.growth(kind)
    return grown, GROWN, "times as much as before", program


# Causes come before consequences: if processors are exhausted, threads and connections are all in use as well.
RULES: tuple[Callable[[Watched], Evidence], ...] = (
    _generator,
    _other_programs,
    _processors,
    _locks,
    _pooler,
    _gunicorn,
    _disk,
    _pool,
    _connections,
    _threads,
    _memory,
    _growing_memory,
    _growing_files,
)


def evaluate(watched: Watched) -> tuple[Evidence, ...]:
    """The evaluation of all rules, in their order."""
    return tuple(rule(watched) for rule in RULES)


def decide(watched: Watched, *, only_late: bool = False) -> Verdict:
    """The verdict of the first rule whose resource is exhausted.

    `only_late` means that the rate was not sustained only because the generator was late; without an exhausted
    resource the verdict is then void.
    """
    evidence = evaluate(watched)
    for one in evidence:
        if one.is_exhausted:
            return Verdict(one.resource, one.remark, one.void, evidence)
    if only_late:
        return Verdict(GENERATOR, "it was late, with processors to spare", True, evidence)
    return Verdict(NOTHING, "", False, evidence)
