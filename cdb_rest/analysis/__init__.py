"""Questions about whole global tags: differences, affected moments, coverage, uses of a payload, and reasons for a result.

The database answers them, and the memory that a worker needs does not depend on the number of rows.
"""
