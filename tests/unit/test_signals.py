"""Signals that end a command: raised as exceptions, but not while `subprocess` has its lock nor while a module is imported."""

import contextlib
import functools
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from cdb.processes import child, signals
from cdb.serving import nginx_keeper
from cdb_rest.management.interruption import interruptible


@pytest.fixture
def installed():
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in numbers}
    hook = sys.unraisablehook
    signals.install()
    yield
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


class InterruptedLock:
    """The lock of a process, taken in the moment in which SIGTERM arrives."""

    def __init__(self):
        self._lock = threading.Lock()

    def acquire(self, *how):
        taken = self._lock.acquire(*how)
        signal.raise_signal(signal.SIGTERM)
        return taken

    def release(self):
        self._lock.release()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_):
        self.release()


def test_a_signal_in_the_middle_of_a_poll_does_not_make_the_next_wait_endless(installed):
    process = child.start(["sleep", "60"])
    process._waitpid_lock = InterruptedLock()
    with pytest.raises(SystemExit):
        process.poll()
    process._waitpid_lock.acquire = process._waitpid_lock._lock.acquire
    process.kill()
    assert process.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_is_raised_at_once_or_at_the_end_of_the_outermost_block_that_holds_it(installed, number, error):
    with pytest.raises(error):
        signal.raise_signal(number)
    steps = []
    with pytest.raises(error), signals.deferred():
        with signals.deferred():
            signal.raise_signal(number)
            steps.append("inner")
        steps.append("outer")
    assert steps == ["inner", "outer"]
    with signals.deferred():
        steps.append("nothing is left")


def test_a_signal_during_an_import_is_not_lost(installed, tmp_path, monkeypatch):
    # As modules of C do that can go without what they ask for.
    ignoring = (
        "import signal\ntry:\n    signal.raise_signal(signal.SIGTERM)\nexcept BaseException:\n    pass\nloaded = True\n"
    )
    (tmp_path / "ignoring.py").write_text(ignoring)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as ended:
        import ignoring

        assert ignoring.loaded
        time.sleep(30)
    assert ended.value.code == 128 + signal.SIGTERM
    del sys.modules["ignoring"]


def test_a_signal_whose_exception_python_ignores_is_not_lost(installed):
    class Sender:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit):
        Sender()
        time.sleep(30)


def test_a_signal_at_the_end_of_a_block_does_not_skip_the_end(installed):
    # In C, so that the frame is that of contextlib.
    sender = SimpleNamespace(close=functools.partial(signal.raise_signal, signal.SIGTERM))
    steps = []
    with pytest.raises(SystemExit):
        with contextlib.closing(sender):
            pass
        steps.append("ended")
        time.sleep(30)
    assert steps == ["ended"]


@pytest.mark.parametrize("is_begin", [True, False])
def test_a_signal_at_the_begin_or_end_of_an_interruptible_block_is_not_lost(monkeypatch, is_begin):
    def send_signal(descriptor, original=signal.set_wakeup_fd, **options):
        if is_begin and descriptor >= 0:
            signal.raise_signal(signal.SIGTERM)
        previous = original(descriptor, **options)
        if not is_begin and descriptor < 0:
            signal.raise_signal(signal.SIGTERM)
        return previous

    monkeypatch.setattr(signal, "set_wakeup_fd", send_signal)
    with pytest.raises(SystemExit), interruptible():
        pass


def test_a_signal_while_nginx_starts_reaches_it(monkeypatch, tmp_path):
    class Nginx:
        def __init__(self, *arguments):
            self.process = None

        def start(self):
            signal.raise_signal(signal.SIGTERM)
            self.process = self.started = subprocess.Popen(["sleep", "60"])

        def running(self):
            return [self.process] if self.process.poll() is None else []

        def restart_after_crash(self):
            return False

        def send(self, number):
            if self.process:
                self.process.send_signal(number)

    numbers = (signal.SIGQUIT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    monkeypatch.setattr(nginx_keeper, "Nginx", Nginx)
    try:
        assert nginx_keeper.main(tmp_path, "127.0.0.1:0") == -signal.SIGTERM
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
