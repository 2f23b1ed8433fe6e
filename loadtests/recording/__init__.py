"""What became of every request of a load test: how it is called, written and read back."""
