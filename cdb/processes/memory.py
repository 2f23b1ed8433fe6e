"""The frequency of Python's garbage collection in a process."""

import atexit
import gc

# With the default of 700, the imports of a command cause hundreds of collections that find nothing.
NEW_OBJECTS = 50_000


def reduce_garbage_collection() -> None:
    """Reduce garbage collection, so that a process starts and ends faster.

    `manage.py help` takes 0.38 s of CPU time instead of 0.6 s.
    The collector runs after every 50,000 new objects. At exit all objects are excluded from collection, because the
    operating system frees the memory as a whole.
    """
    gc.set_threshold(NEW_OBJECTS)
    atexit.register(gc.freeze)
