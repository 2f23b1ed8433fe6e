"""WSGI applications around Django's: observation, refusal of overdue requests, access to reads, and a shortcut for hot reads."""
