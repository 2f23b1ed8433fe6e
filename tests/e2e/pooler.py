"""A PgBouncer for one test, in front of the embedded server of a service."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.service import Service, free_port


@contextmanager
def pooler(service: Service, directory: Path, *, of_database: str = "", settings: str = "") -> Iterator[str]:
    """Inside the block it runs in transaction mode; yields the URL of the database.

    `directory` is for its files, `of_database` what else its line for the database has, `settings` further lines.
    """
    port = free_port()
    sockets = service.data / "postgres" / "socket"
    (directory / "users.txt").write_text('"cdb" ""\n')
    (directory / "pgbouncer.ini").write_text(
        f"[databases]\ncdb = host={sockets} dbname=cdb user=cdb {of_database}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {directory}/users.txt\npool_mode = transaction\n{settings}\n"
    )
    # Like PostgreSQL it refuses to be root; the server's account may enter the socket's directory.
    owner = sockets.stat()
    as_root = os.geteuid() == 0
    directory.chmod(0o755)
    process = subprocess.Popen(
        ["pgbouncer", str(directory / "pgbouncer.ini")],
        user=owner.st_uid if as_root else None,
        group=owner.st_gid if as_root else None,
        extra_groups=[] if as_root else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(1)
        assert process.poll() is None
        yield f"postgresql://cdb@127.0.0.1:{port}/cdb"
    finally:
        process.terminate()
        process.wait(10)
