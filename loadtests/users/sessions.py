"""HTTP sessions that send each request once and hide nothing."""

import geventhttpclient.client
from locust import FastHttpUser
from locust.contrib.fasthttp import FastHttpSession

# A connection that is dropped before its answer would be tried again for requests of these methods, unseen by locust: the
# client would find successes where the jobs of experiments abort, and the server would count more requests than were sent.
geventhttpclient.client.IDEMPOTENT_METHODS = frozenset()
ANY_STATUS = range(1000)


def new_session(user: FastHttpUser, patience: float) -> FastHttpSession:
    """A session with one connection at a time, for a user's host."""
    session = FastHttpSession(
        base_url=user.host,
        request_event=user.environment.events.request,
        user=user,
        concurrency=1,
        max_retries=0,
        max_redirects=0,
        network_timeout=patience,
        connection_timeout=patience,
        insecure=user.insecure,
    )
    # For statuses that it calls bad, the client closes the connection before it has read the body.
    session.client.valid_response_codes = ANY_STATUS
    return session
