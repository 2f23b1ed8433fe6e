"""How gunicorn runs here: its worker, and its refusals."""
