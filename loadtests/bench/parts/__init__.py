"""The parts of the bench; each has a function `measure` that returns a `Result`."""
