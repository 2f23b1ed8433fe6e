"""gunicorn as the instance of one pool: python -m cdb.serving.gunicorn_pool POOL OPTION...

The options are gunicorn's own.
"""

import sys

from gunicorn.app.wsgiapp import run

from cdb.env import ROOT
from cdb_rest.metrics.place import here


def main(pool: str, *options: str) -> None:
    """Become gunicorn, which tells by the pool's name what it counts."""
    here.pool = pool
    configuration = str(ROOT / "deploy" / "gunicorn.conf.py")
    sys.argv = ["gunicorn", "--config", configuration, "--name", pool, "--statsd-prefix", f"cdb.{pool}", *options]
    run()


if __name__ == "__main__":
    main(*sys.argv[1:])
