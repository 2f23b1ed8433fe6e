"""Running a program to its end as a child process, with its output, time, CPU time and memory."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """The result of a child process: exit code, output, wall and CPU seconds, peak resident memory in bytes."""

    code: int
    output: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def _kill(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stop: Callable[[subprocess.Popen], None] = _kill,
) -> Finished:
    """Run a program to its end; `stop` ends it if this process is interrupted meanwhile."""
    with tempfile.TemporaryFile("w+") as output:
        begin = time.monotonic()
        # In a new session, because Ctrl-C must reach this process only, which then stops the child.
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            # wait4 gives the usage of this child alone; getrusage would give the sum over all children.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            stop(process)
            raise
        seconds = time.monotonic() - begin
        output.seek(0)
        return Finished(
            process.returncode, output.read(), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        )
