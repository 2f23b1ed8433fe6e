"""Messages to the service manager that started us, by systemd's protocol (sd_notify)."""

import contextlib
import socket

from cdb import env


def tell(state: str) -> None:
    """Tell the service manager a state, such as READY=1; without one, do nothing."""
    address = env.notify_socket()
    if not address:
        return
    # An address that begins with @ is in the abstract namespace.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
        connection.sendto(state.encode(), name)
