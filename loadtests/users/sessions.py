"""HTTP sessions that never retry a request and never hide an error."""

import geventhttpclient.client
from locust import FastHttpUser
from locust.contrib.fasthttp import FastHttpSession

# geventhttpclient retries requests with these methods when the connection closes before the response, and
# locust does not see it. The load test would report successes where real jobs abort, and the server would count
# more requests than were recorded.
geventhttpclient.client.IDEMPOTENT_METHODS = frozenset()
ANY_STATUS = range(1000)


def new_session(user: FastHttpUser, patience: float) -> FastHttpSession:
    """A session for the host of a user, with one connection at a time; `patience` is its network timeout in seconds."""
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
    # For other statuses the client would close the connection before it has read the body.
    session.client.valid_response_codes = ANY_STATUS
    return session
