"""gunicorn's master process on sockets that it was given: python -m cdb.serving.gunicorn_master POOL DESCRIPTOR...

It finds them as systemd would hand them over, so it leaves them in place when it ends: whoever connects meanwhile waits for
the next master. Everything else is read when it starts, so that a new master is one of the new code and the new settings.
"""

import fcntl
import os
import sys

from cdb.serving import gunicorn_pool, nginx_configuration, pgbouncer
from cdb.serving.pools import pools
from cdb_rest.metrics.place import here

FIRST_DESCRIPTOR = 3
# Longer than any answer takes: who replaces a master waits for it, and who stops the service does not.
GRACEFUL_SECONDS = 3600


def main(pool_name: str, descriptors: list[int]) -> None:
    """Become the master of a pool."""
    _hand_over(descriptors)
    pool = pools()[pool_name]
    here.pooler, here.nginx = pgbouncer.console_url(), nginx_configuration.status_url()
    gunicorn_pool.main(pool.name, "--workers", str(pool.workers), "--graceful-timeout", str(GRACEFUL_SECONDS))


def _hand_over(descriptors: list[int]) -> None:
    # Out of the way first: one may have another one's place.
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD, FIRST_DESCRIPTOR + len(descriptors)) for number in descriptors]
    for place, number in enumerate(moved, FIRST_DESCRIPTOR):
        os.dup2(number, place)
        os.close(number)
    os.environ["LISTEN_FDS"] = str(len(descriptors))
    os.environ["LISTEN_PID"] = str(os.getpid())


if __name__ == "__main__":
    main(sys.argv[1], [int(number) for number in sys.argv[2:]])
