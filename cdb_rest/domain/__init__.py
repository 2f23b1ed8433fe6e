"""The rules of the field in plain Python: no Django, no database, no HTTP."""
