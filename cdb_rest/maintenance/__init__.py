"""Checks, repairs and pruning of what is stored, for commands."""
