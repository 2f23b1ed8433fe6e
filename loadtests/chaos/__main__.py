"""Inject faults into the service under load, and report their effects on clients (python -m loadtests.chaos)."""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cdb import env
from cdb_rest.management.quantities import IN_SECONDS, Number
from loadtests import usage
from loadtests.chaos import faults, hostile_faults  # noqa: F401 -- they define the faults
from loadtests.chaos.play import play, prepare
from loadtests.chaos.report import FREEZE_SECONDS, Played, text_of, write
from loadtests.chaos.stage import FAULTS, Fault
from loadtests.reporting.report import notes
from loadtests.service import INTERRUPTED, ServiceError, Settings, kill, prepare_process, running
from loadtests.standby import Standby

# An empty value is the default of the service; the harness has others.
AS_IN_PRODUCTION = {"CDB_STRATEGIES": "", "CDB_LOOKUP_TIMEOUT_SECONDS": ""}
QUICK_SECONDS = 8.0


def main(arguments: Sequence[str]) -> int:
    """Inject the faults.

    Returns 1 if a request was dropped, wrong or lost, or if the service did not recover in time.
    """
    options = _parser().parse_args(arguments)
    prepare_process()
    seconds = options.seconds or (QUICK_SECONDS if options.quick else FREEZE_SECONDS)
    chosen = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    directory = env.read()["CDB_DATA_DIR"] / "chaos"
    directory.mkdir(parents=True, exist_ok=True)
    played: list[Played] = []
    try:
        for with_replica in (False, True):
            group = [fault for fault in chosen if fault.with_replica == with_replica]
            if group:
                data = Path(tempfile.mkdtemp(prefix="service-", dir=directory))
                _play_all(group, data, options.port, seconds, played)
    except ServiceError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        write(directory, played, seconds)
    print(f"\n{text_of(played, seconds)}\nWritten to {directory}")
    return 0 if all(one.is_good for one in played) else 1


def _play_all(group: list[Fault], data: Path, port: int | None, seconds: float, played: list[Played]) -> None:
    """Inject faults into one service, with a replica if the faults need it, and append the results to `played`."""
    data.chmod(0o711)
    standby = Standby(data, data / "standby") if group[0].with_replica else None
    settings = AS_IN_PRODUCTION | ({"DATABASE_REPLICA_URLS": standby.url} if standby else {})
    try:
        with (
            running(Settings(data, settings), workers=None, command="serve", port=port) as service,
            standby.running() if standby else contextlib.nullcontext(),
        ):
            frozen = prepare(service)
            if standby:
                standby.wait_until_caught_up()
            for number, fault in enumerate(group):
                print(f"{fault.name}: {fault.what}", flush=True)
                played.append(play(fault, service, frozen, number, seconds, standby))
                print(played[-1], flush=True)
    finally:
        # Normally the service has stopped its database.
        kill(usage.processes_in(data / "postgres" / "data"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests.chaos", description=__doc__, epilog=notes("chaos")[0])
    names, text = [fault.name for fault in FAULTS], "inject this fault only; may be repeated"
    parser.add_argument("--only", action="append", choices=names, help=text)
    text = f"duration of faults that do not end by themselves (default: {FREEZE_SECONDS:.0f}s)"
    parser.add_argument("--seconds", **IN_SECONDS, help=text)
    parser.add_argument("--quick", action="store_true", help=f"the same as --seconds {QUICK_SECONDS:.0f}s")
    text = "TCP port of the service (default: a free one)"
    parser.add_argument("--port", action=Number, kind=int, least=1, most=65535, help=text)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
