"""Load shapes: the number of users as a function of time."""
