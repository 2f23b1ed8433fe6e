"""The REST API: what is HTTP and nothing else."""
