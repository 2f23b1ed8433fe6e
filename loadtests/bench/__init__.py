"""`make bench`: measures the service from the inside and the outside and writes one report."""
