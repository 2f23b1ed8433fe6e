"""Scenarios: generated data for trials, tests and measurements.

The package has the definitions, a deterministic generator of rows and the writer.
"""
