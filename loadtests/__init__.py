"""Load tests, benchmarks and fault injection for the service, with their reports."""
