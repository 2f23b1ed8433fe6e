"""WSGI applications around Django's: one for instrumentation, and shortcuts for the most frequent requests."""
