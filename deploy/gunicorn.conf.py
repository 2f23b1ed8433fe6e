"""The settings of gunicorn, which serves everything but lookups behind nginx.

Its address is given on the command line: `gunicorn --config deploy/gunicorn.conf.py --bind unix:PATH`.
"""

from cdb import security
from cdb.serving import sizes

security.check_contradictions("serve")
wsgi_app = "cdb.wsgi:application"
worker_class = "gthread"
# Threads, because a request mostly waits for the database. Each keeps a database connection open.
threads = sizes.threads()
workers = sizes.other_workers()
# A process accepts a connection when a thread is free, and leaves the others to the other processes.
worker_connections = threads
backlog = 4096
# nginx opens a connection for each request: a write on one that is just being closed would be lost, and must not be repeated.
keepalive = 0
# A process whose main loop does not respond for this time is replaced. Threads may be busy for longer.
timeout = 60
# The time for requests in progress when gunicorn is stopped or reloaded.
graceful_timeout = 10
# The longest request line that nginx passes on.
limit_request_line = 8190
# Request headers never set variables of WSGI, such as SCRIPT_NAME.
forwarder_headers = ""
loglevel = "warning"
# gunicorn is controlled by signals.
control_socket_disable = True
