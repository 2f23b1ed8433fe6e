"""Parsing of requests: parameters of paths and query strings, JSON bodies, and unknown names."""
