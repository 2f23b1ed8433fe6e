"""Django middleware: what holds for every request that Django handles, whatever its route."""
