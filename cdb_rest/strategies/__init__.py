"""Lookup strategies: alternative implementations of the lookup, to compare their speed and plans with the service's own."""
