"""How the number of users changes with time."""
