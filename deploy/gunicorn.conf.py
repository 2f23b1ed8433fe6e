"""The settings of gunicorn for `make run`, `make serve` and containers.

`make serve` starts two instances, on Unix sockets that it creates, and with a separate number of workers for each one
(cdb/serving/gunicorn_master.py). To start gunicorn in another way behind a proxy, add `--bind unix:PATH`.
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

# No object becomes garbage while the application is loaded, so collection would only take time.
gc.disable()

_values = env.read()

wsgi_app = "cdb.wsgi"
# The service uses plain HTTP and listens only on this machine; a proxy serves the network. Sockets that are
# passed to gunicorn at the start are used instead.
bind = f"127.0.0.1:{_values['PORT']}"

# Threads, because a request mostly waits for the database. Each thread keeps a database connection open, so
# workers x threads must not exceed the number of connections that the database allows.
worker_class = "cdb.worker.worker.BufferingWorker"
threads = _values["CDB_THREADS"]
# One process more than cores, because a process does not use the CPU all the time; on a large machine as many
# as the 200 connections of the embedded server allow. With DEBUG only one process, because the debug toolbar
# stores its records in the memory of a process.
_most = 1 if _values["DEBUG"] else min(len(os.sched_getaffinity(0)) + 1, 160 // threads)
workers = _values["CDB_WORKERS"] or max(1, _most)
# The application is loaded once, and the workers share its memory. No database connection is open before they
# are forked.
preload_app = True

# Jobs that start together all connect at the same time, and a refused connection aborts a job. So many
# connections can wait in each process, for at most CDB_QUEUE_TIMEOUT_SECONDS and with about 10 KB of memory
# each. A process can serve more than these within that time.
worker_connections = 4000
# Further connections wait in the kernel's queue (up to net.core.somaxconn). If that is full, the client's
# kernel retries after 1, 3, 7 … seconds, so no connection is refused.
backlog = 4096
# Each connection needs a file descriptor, and a slow one a second descriptor for its temporary file. The soft
# limit is often 1,024, so it is raised. The other descriptors are for the database, logs and metrics.
_other_descriptors = 200
_descriptors = 2 * worker_connections + _other_descriptors
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if _hard != resource.RLIM_INFINITY and _hard < _descriptors:
    worker_connections = max(100, (_hard - _other_descriptors) // 2)
    _descriptors = _hard
resource.setrlimit(resource.RLIMIT_NOFILE, (max(_soft, _descriptors), _hard))
# Most clients use a new connection for each request; those that keep a connection send the next request within seconds.
# The time must be longer than the 4 s after which nginx closes idle connections (nginx.conf).
keepalive = 5
# A worker is replaced after so many requests, so that memory leaks and fragmentation can't grow without
# limit. At a thousand lookups per second that is every few minutes, and costs a fork. The jitter prevents
# workers from being replaced at the same time. The worker postpones its replacement while clients still
# receive responses.
max_requests = 200_000
max_requests_jitter = 50_000
# A worker without a heartbeat for this time is replaced. Its main loop sends the heartbeat, also while
# threads are busy.
timeout = 60
# The maximum time for requests in progress, including streamed responses, when gunicorn is stopped. (With
# `make serve` a replaced master has an hour: cdb/serving/gunicorn_master.py.)
graceful_timeout = 30

# With sendfile, a thread would wait for the client to receive the file.
sendfile = False

# Long percent-encoded names in a path must fit.
limit_request_line = LINE_BYTES
# Workers send heartbeats by changing a file, which may block on some disks.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112, S108

# Time, client, request, status, bytes of the body, microseconds in the application, and request id.
accesslog = _values["CDB_ACCESS_LOG"] or None
access_log_format = '%(t)s %(h)s "%(r)s" %(s)s %(B)s %(D)sus %({x-request-id}o)s'
loglevel = "warning"
# Metrics of requests, statuses, durations and workers.
statsd_host = _values["CDB_STATSD_HOST"] or None
statsd_prefix = "cdb"
# gunicorn is controlled by signals. All instances of a user would share one control socket.
control_socket_disable = True

# All processes share the files of the metrics in /metrics. Their directory must be set before the application
# is loaded.
here.threads = threads
share(metrics_directory.ensure())

# No proxy sends SCRIPT_NAME or PATH_INFO in a header, so such headers of clients are dropped.
forwarder_headers = ""

# The other parser of gunicorn is a separate package.
http_parser = "python"


def on_starting(server: Any) -> None:
    """Raise `SystemExit`, before gunicorn opens a socket, if DEBUG or CDB_IOV_MODE is wrong.

    With DEBUG gunicorn must listen only on addresses of this machine. The database, if it can be reached,
    must have been created with the configured CDB_IOV_MODE.
    """
    try:
        security.check_debug_listens_here(server.cfg.address)
        # If the database cannot be reached yet, each process checks the mode when it connects.
        with contextlib.suppress(psycopg2.OperationalError):
            database.check_mode()
    except env.ConfigurationError as error:
        raise SystemExit(f"cdb: {error}") from error


def post_fork(server: Any, worker: Any) -> None:
    """Give a worker the queue in which it stores signals until it has handlers of its own."""
    worker.early_signals = server.SIG_QUEUE


def worker_exit(server: Any, worker: Any) -> None:
    """End what a worker has started for compiled tags, before it ends itself."""
    # Imported here, because it needs the application's settings.
    from cdb_rest.compiled import registry

    registry.close()


def when_ready(server: Any) -> None:
    """Before the first worker is forked: warn if the database allows too few connections, and freeze all objects.

    Workers share the memory of the loaded objects as long as the garbage collector does not traverse them.
    Freezing also makes each collection faster, and the exit of a worker: 0.06 s of CPU time instead of 0.25
    s.
    """
    # Imported here, because these modules need the application's settings. The instances of `make serve` have
    # the names of the pools; `make serve` has already checked the limits for all of them together. The
    # instances in containers have the same names, and there is no such check for them.
    from cdb.serving.connection_limits import warnings_of_gunicorn
    from cdb.serving.pools import pools

    if server.cfg.proc_name not in pools():
        for line in warnings_of_gunicorn(server.cfg.workers, server.cfg.threads):
            print(f"cdb: {line}", file=sys.stderr, flush=True)  # noqa: T201
    gc.freeze()
    gc.enable()
