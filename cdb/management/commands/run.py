"""manage.py run"""

import contextlib
import signal
import subprocess
import sys
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cdb import database, env
from cdb.env import ROOT, ConfigurationError
from cdb.management.preparation import check_settings, instructions, prepare_database
from cdb.processes import machine, multiprocess_metrics
from cdb.processes.parent import ENDING, starting_child
from cdb.serving.ready import is_ready
from cdb.serving.sizes import lookup_workers

START_TIMEOUT_SECONDS = 60
# Longer than granian gives its processes to finish their requests.
STOP_TIMEOUT_SECONDS = 15


class Command(BaseCommand):
    help = (
        "Serve on 127.0.0.1 and PORT until Ctrl-C or SIGTERM, as `make run` does: apply migrations, seed the scenario "
        "SCENARIO if there is no global tag, and run granian. The strategies are served unless CDB_STRATEGIES is off, and "
        "writes are accepted from all clients unless CDB_OPEN_WRITES is off."
    )
    requires_system_checks = []
    _is_interrupted = False

    def handle(self, **options: Any) -> None:
        check_settings()
        port = env.read()["PORT"]
        # A shell makes background processes ignore SIGINT, but a program that sends it wants the service to end.
        for number in ENDING:
            signal.signal(number, self._interrupt)
        try:
            machine.check_port_free(port, "make run")
            prepare_database(self._say)
            with self._children() as start:
                size = ["--workers", str(lookup_workers()), "--blocking-threads", str(env.read()["CDB_THREADS"])]
                granian = start(str(ROOT / "deploy" / "granian.sh"), "--host", "127.0.0.1", "--port", str(port), *size)
                _wait_until_ready(granian, port)
                for line in instructions(opens_writes=True):
                    self._say(line)
                self._watch(granian, start)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self._say("Stopping.")

    def _interrupt(self, *_: object) -> None:
        # Python drops an exception that is raised while it deletes an object, so `_watch` raises it again.
        self._is_interrupted = True
        raise KeyboardInterrupt

    def _watch(self, granian: "subprocess.Popen[bytes]", start: Any) -> None:
        """Restart the compiler, and the embedded PostgreSQL, if they end. Raises `CommandError` if granian ends."""
        compiler = None
        while granian.poll() is None:
            if self._is_interrupted:
                raise KeyboardInterrupt
            if compiler is None or compiler.poll() is not None:
                compiler = start(sys.executable, str(ROOT / "manage.py"), "compiler")
            server = database.in_use()
            try:
                if server and server.restart_if_ended():
                    self._say("The embedded PostgreSQL had ended; it was restarted.")
            except ConfigurationError as error:
                # The next attempt is a second later.
                self._say(f"The embedded PostgreSQL has ended: {error}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                granian.wait(1)
        raise CommandError(f"granian ended unexpectedly with code {granian.returncode}")

    @contextlib.contextmanager
    def _children(self) -> Any:
        """A function that starts a program, which gets SIGTERM at the end of the block, or when this process is killed."""
        values = env.read()
        # For trying the service out on one machine.
        settings = {name: "true" for name in ("CDB_STRATEGIES", "CDB_OPEN_WRITES") if values[name] is None}
        settings["PROMETHEUS_MULTIPROC_DIR"] = str(multiprocess_metrics.recreate())
        child = env.child_environment(**settings)
        processes: list[subprocess.Popen[bytes]] = []

        def start(*command: str) -> "subprocess.Popen[bytes]":
            # In a session of its own: Ctrl-C must reach only this process.
            with starting_child() as prepare:
                process = subprocess.Popen(command, cwd=ROOT, env=child, start_new_session=True, preexec_fn=prepare)  # noqa: S603
                processes.append(process)
            return process

        try:
            yield start
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                try:
                    process.wait(STOP_TIMEOUT_SECONDS)
                except (subprocess.TimeoutExpired, KeyboardInterrupt):
                    process.kill()
            multiprocess_metrics.remove()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _wait_until_ready(granian: "subprocess.Popen[bytes]", port: int) -> None:
    """Wait until granian serves. Raises `ConfigurationError` if it ends before, or takes too long."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not is_ready(port):
        if granian.poll() is not None:
            raise ConfigurationError(f"granian ended with code {granian.returncode}; see the lines above")
        if time.monotonic() > deadline:
            raise ConfigurationError(f"granian was not ready within {START_TIMEOUT_SECONDS} s; see the lines above")
        time.sleep(0.05)
