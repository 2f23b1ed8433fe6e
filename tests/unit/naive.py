"""The valid payload at a moment, by its definition."""


def valid(rows, moment):
    """The `iov` of the row with the latest start, if its end is not reached."""
    started = [row for row in rows if row.interval.start <= moment]
    if not started:
        return None
    latest = max(started, key=lambda row: row.interval.start)
    return latest.iov if moment < latest.interval.end else None
