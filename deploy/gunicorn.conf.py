"""gunicorn's settings, each with its reason. `make run` and `make serve` start gunicorn with this file.

`make serve` starts two instances, on Unix sockets that it makes itself, and with their own number of workers
(cdb/serving/gunicorn_master.py). Who starts gunicorn otherwise behind a proxy adds `--bind unix:PATH`.
"""

import contextlib
import gc
import os
import resource
import sys
from typing import Any

import psycopg2

from cdb import database, env, security
from cdb.processes import metrics_directory
from cdb.worker.request_head import LINE_BYTES
from cdb_rest.metrics.slots import here
from cdb_rest.metrics.values import share

# While the application is loaded no object becomes garbage.
gc.disable()

_values = env.read()

wsgi_app = "cdb.wsgi"
# The service speaks plain HTTP to its own machine; what faces the network stands in front of it. Sockets that are handed over
# at the start are used instead.
bind = f"127.0.0.1:{_values['PORT']}"

# Threads, because a request mostly waits for the database; each keeps a database connection of its own, so that
# workers x threads must stay below what the database accepts.
worker_class = "cdb.worker.worker.BufferingWorker"
threads = _values["CDB_THREADS"]
# One more than the cores that we may use, because a process does not compute all the time; on a large machine as many as
# the 200 connections of the embedded server allow. A single one in development, because the toolbar keeps what it records
# in the memory of its process.
_most = 1 if _values["DEBUG"] else min(len(os.sched_getaffinity(0)) + 1, 160 // threads)
workers = _values["CDB_WORKERS"] or max(1, _most)
# The application is loaded once and shared by all workers; no connection is open by then.
preload_app = True

# Jobs that start together all connect at once, and a refused connection aborts a job. So many wait inside each process, for
# CDB_QUEUE_TIMEOUT_SECONDS at most and at some 10 KB each; it answers more than these within that time.
worker_connections = 4000
# What comes beyond waits in the kernel (up to net.core.somaxconn), and beyond that the client's kernel knocks again after
# 1, 3, 7 … seconds: nobody is refused.
backlog = 4096
# Each connection takes a descriptor, and a slow one a second for its file. A process often may have 1,024 unless it asks for
# more. The others are for the database, logs and counts.
_other_descriptors = 200
_descriptors = 2 * worker_connections + _other_descriptors
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if _hard != resource.RLIM_INFINITY and _hard < _descriptors:
    worker_connections = max(100, (_hard - _other_descriptors) // 2)
    _descriptors = _hard
resource.setrlimit(resource.RLIMIT_NOFILE, (max(_soft, _descriptors), _hard))
# Most clients open a connection for each call and close it; those that keep theirs come back within seconds.
# nginx.conf relies on it: it gives connections up after 4 s.
keepalive = 5
# A worker is replaced now and then, so that nothing can grow in it for ever: memory, fragments, a leak in a library. At a
# thousand lookups a second that is every few minutes, and costs a fork; the jitter keeps workers from going together. Our worker
# puts it off while clients still receive responses.
max_requests = 200_000
max_requests_jitter = 50_000
# A worker that shows no sign of life for this long is replaced. Threads at work do not count as silence.
timeout = 60
# Requests in progress may end before a stop, long streams included where they can. (Behind nginx a worker that is to be
# replaced has as long as it takes.)
graceful_timeout = 30

# A thread would wait for the client to take the file.
sendfile = False

# Long names in a path, percent-encoded, must fit.
limit_request_line = LINE_BYTES
# Heartbeats are file changes, and on some disks those block.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112, S108

# Time, client, request, status, bytes of the body, how long it took in the application, and the request's id.
accesslog = _values["CDB_ACCESS_LOG"] or None
access_log_format = '%(t)s %(h)s "%(r)s" %(s)s %(B)s %(D)sus %({x-request-id}o)s'
loglevel = "warning"
# Requests, their statuses and durations, and workers, as figures.
statsd_host = _values["CDB_STATSD_HOST"] or None
statsd_prefix = "cdb"
# Managing gunicorn goes by signals; its control socket would be shared by all instances of one user.
control_socket_disable = True

# What /metrics tells is counted in files, by all processes together. They are told before the application is loaded.
here.threads = threads
share(metrics_directory.ready())

# No proxy tells us a path by a header, so a client's header of that name is dropped.
forwarder_headers = ""

# The one of gunicorn's two parsers that is installed everywhere.
http_parser = "python"


def on_starting(server: Any) -> None:
    """Before any socket is open: with DEBUG only this machine may connect, and the database, if it is there, is of our mode."""
    try:
        security.check_debug_listens_here(server.cfg.address)
        # If the database cannot be reached yet, each process checks the mode when it connects.
        with contextlib.suppress(psycopg2.OperationalError):
            database.check_mode()
    except env.ConfigurationError as error:
        raise SystemExit(f"cdb: {error}") from error


def when_ready(server: Any) -> None:
    """Before the first worker: say so if there are more threads than connections, and set what is loaded aside.

    The workers share the memory of what is loaded as long as their garbage collectors do not look at it. Looking would also
    make each collection slower, and the end of a worker, which takes 0.06 s of processor time instead of 0.25.
    """
    # It needs the application's settings, which are there by now. `make serve`, which gives its instances names of their own, has
    # looked at all of them together.
    from cdb.serving.connection_limits import warnings_of_gunicorn
    from cdb.serving.pools import pools

    if server.cfg.proc_name not in pools():
        for line in warnings_of_gunicorn(server.cfg.workers, server.cfg.threads):
            print(f"cdb: {line}", file=sys.stderr, flush=True)  # noqa: T201
    gc.freeze()
    gc.enable()
