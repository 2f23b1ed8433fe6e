"""manage.py run"""

from typing import Any

from django.core.management.base import CommandError

from cdb.management.serving_command import ServingCommand
from cdb.processes.server import Server


class Command(ServingCommand):
    help = (
        "Serve on 127.0.0.1 and PORT until Ctrl-C or SIGTERM, as `make run` does: apply migrations, seed the scenario "
        "SCENARIO if there is no global tag, and run gunicorn. The strategies are served unless CDB_STRATEGIES is off, and "
        "writes are accepted from all clients unless CDB_OPEN_WRITES is off."
    )
    opens_writes = True

    def serve(self, **options: Any) -> None:
        server = Server()
        server.check_port_free()
        self.prepare_database()
        try:
            server.start()
            self.print_instructions(server.url)
            code = server.wait(self.keep_database_running)
        except (KeyboardInterrupt, SystemExit):
            self.print_line("Stopping.")
            return
        finally:
            server.stop()
        raise CommandError(f"gunicorn ended unexpectedly with code {code}")
