"""WSGI applications around Django's: observation, refusals, pinned addresses, access to reads, and a shortcut for hot reads."""
