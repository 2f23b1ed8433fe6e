"""`make bench`: benchmarks of the service and of its parts, with one report."""
