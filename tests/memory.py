"""A pytest plugin that keeps the garbage collector from traversing the thousands of collected tests."""

import atexit
import gc

gc.disable()
atexit.register(gc.freeze)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
