"""Fault injection under load, with the effects on clients: `make chaos`."""
