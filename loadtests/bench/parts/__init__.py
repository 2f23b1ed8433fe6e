"""The parts of the report: each measures one thing and returns a `Result`."""
