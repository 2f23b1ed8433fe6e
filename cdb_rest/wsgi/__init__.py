"""WSGI applications around Django: what all requests pass, and what answers the most frequent ones before Django."""
