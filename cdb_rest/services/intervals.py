"""Conversion between the columns of payload IOVs and intervals, in the configured mode (`CDB_IOV_MODE`)."""

from django.conf import settings

from cdb_rest.domain.errors import invalid_field
from cdb_rest.domain.moment import Interval, Mode, Moment
from cdb_rest.models import PayloadIOV


def interval_of(iov: PayloadIOV) -> Interval:
    """The interval of a payload IOV. It may be empty, or end before its start."""
    return Interval.from_wire(
        Moment(iov.major_iov, iov.minor_iov),
        Moment(iov.major_iov_end, iov.minor_iov_end),
        Mode(settings.CDB_IOV_MODE),
    )


def set_interval(iov: PayloadIOV, interval: Interval) -> None:
    """Set the columns of a payload IOV to an interval. The row is not saved."""
    start, end = interval.on_wire(Mode(settings.CDB_IOV_MODE))
    iov.major_iov, iov.minor_iov = start
    iov.major_iov_end, iov.minor_iov_end = end


def check_interval(iov: PayloadIOV) -> None:
    """Raise `InvalidInputError` if the interval of a payload IOV is empty or ends before its start."""
    if interval_of(iov).is_empty:
        rule = "after" if settings.CDB_IOV_MODE == Mode.CONTINUOUS else "at or after"
        start, end = Moment(iov.major_iov, iov.minor_iov), Moment(iov.major_iov_end, iov.minor_iov_end)
        raise invalid_field("major_iov_end", f"The end {end} must be {rule} the start {start}.")
