"""Tests of what is known of each request, and who is told."""
