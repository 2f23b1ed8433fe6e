"""A pytest plugin that spares the garbage collector what collecting thousands of tests makes, none of which is garbage."""

import atexit
import gc

gc.disable()
atexit.register(gc.freeze)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
