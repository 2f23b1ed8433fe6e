"""The parts of the bench; each has a function `measure` that adds to a `Result`."""
