"""manage.py run"""

from typing import Any

from django.core.management.base import CommandError

from cdb.management.serving_command import ServingCommand
from cdb.processes.server import Server


class Command(ServingCommand):
    help = (
        "Serve: bring the database up to date, seed the scenario of the variable SCENARIO if there is no global tag yet, "
        "and run gunicorn on 127.0.0.1 and PORT until Ctrl-C or SIGTERM. This is what `make run` does."
    )

    def serve(self, **options: Any) -> None:
        server = Server()
        server.check_port_free()
        self.prepare_database()
        try:
            server.start()
            self.say_how(server.url)
            code = server.wait(self.look_after_database)
        except (KeyboardInterrupt, SystemExit):
            self.say("Stopping.")
            return
        finally:
            server.stop()
        raise CommandError(f"gunicorn ended by itself with code {code}")
