"""An embedded server with a directory for backups."""

import contextlib

import psutil
import psycopg2

from cdb.embedded.backup_directory import BackupDirectory
from cdb.embedded.backups import back_up
from cdb.embedded.restoring import restore
from cdb.embedded.server import EmbeddedPostgres


class Backed:
    """An embedded server with a directory for backups."""

    def __init__(self, directory):
        self.directory = directory
        self.server = EmbeddedPostgres(directory / "postgres", {"fsync": "off"})
        self.backups = BackupDirectory(directory / "backups")
        self.segments = []

    @contextlib.contextmanager
    def running(self):
        self.server.acquire()
        try:
            yield
        finally:
            self.server.release()

    def ask(self, statement, *values):
        with contextlib.closing(psycopg2.connect(self.server.url)) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute(statement, values)
            return cursor.fetchall()

    def write(self, name):
        self.ask('INSERT INTO "PayloadType" (name) VALUES (%s) RETURNING id', name)

    def kill(self):
        """Kill all processes of the server, as a power failure does: nothing is archived at the end."""
        for process in psutil.process_iter(["cwd"]):
            if process.info["cwd"] == str(self.server.data):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def back_up(self, **options):
        return back_up(self.server, self.backups, **options)

    def restore(self, until=None, timeline=None):
        """What `read` and `finish` got: the names before and those in between."""
        found = []
        restore(
            self.server,
            self.backups,
            until=until,
            timeline=timeline,
            read=self._names,
            finish=lambda before: found.append((before, self._names())),
        )
        return found[0]

    def _names(self):
        return "".join(
            name for (name,) in self.ask("SELECT name FROM \"PayloadType\" WHERE name ~ '^.$' ORDER BY name")
        )

    def written(self):
        with self.running():
            return self._names()
