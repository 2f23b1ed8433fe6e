"""The gunicorn master process of one pool: python -m cdb.serving.gunicorn_master POOL [--descriptors N...] [OPTION...]

`--descriptors` are the listening sockets that `make serve` has opened and keeps open. The process passes them to
gunicorn by systemd's socket activation protocol, so gunicorn does not remove their files when it ends. Clients that
connect before the next master has started wait in the queues of the sockets. The number of workers is then that of the
pool. Without `--descriptors`, as in containers, the other options say where gunicorn listens and with how many workers.

Each master reads code and settings at its start. The other options are passed to gunicorn.
"""

import argparse
import fcntl
import os
import sys
from collections.abc import Sequence

from gunicorn.app.wsgiapp import run

from cdb.env import ROOT
from cdb.serving import nginx_configuration, pgbouncer
from cdb.serving.pools import pools
from cdb_rest.metrics.slots import here

FIRST_DESCRIPTOR = 3
# Longer than any response takes, so that a replaced master finishes all of its requests. `make serve` does
# not wait so long when the service is stopped.
GRACEFUL_SECONDS = 3600


def main(arguments: Sequence[str]) -> None:
    """Run the master of a pool in this process. It does not return: gunicorn raises `SystemExit` at its end."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("pool")
    parser.add_argument("--descriptors", type=int, nargs="+")
    ours, options = parser.parse_known_args(arguments)
    if ours.descriptors:
        _hand_over(ours.descriptors)
        here.pooler, here.nginx = pgbouncer.console_url(), nginx_configuration.status_url()
        workers = str(pools()[ours.pool].workers)
        options = ["--workers", workers, "--graceful-timeout", str(GRACEFUL_SECONDS), *options]
    here.pool = ours.pool
    configuration = str(ROOT / "deploy" / "gunicorn.conf.py")
    names = ["--name", ours.pool, "--statsd-prefix", f"cdb.{ours.pool}"]
    sys.argv = ["gunicorn", "--config", configuration, *names, *options]
    run()


def _hand_over(descriptors: list[int]) -> None:
    # Moved to higher numbers first, because one of them may have the target number of another one.
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD, FIRST_DESCRIPTOR + len(descriptors)) for number in descriptors]
    for place, number in enumerate(moved, FIRST_DESCRIPTOR):
        os.dup2(number, place)
        os.close(number)
    os.environ["LISTEN_FDS"] = str(len(descriptors))
    os.environ["LISTEN_PID"] = str(os.getpid())


if __name__ == "__main__":
    main(sys.argv[1:])
