# Varnish before the hosts of cdb. Replace the words between two @, and copy the file to /etc/varnish/default.vcl.
#   @BACKENDS@   for each host: backend NAME { .host = "ADDRESS"; .port = "PORT"; .probe = ready; .connect_timeout = 2s; }
#   @DIRECTOR@   for each host: hosts.add_backend(NAME);
vcl 4.1;

import directors;

probe ready {
    .url = "/health/ready";
    .interval = 1s;
    .timeout = 2s;
    .window = 2;
    .threshold = 1;
    .initial = 1;
}
@BACKENDS@

sub vcl_init {
    new hosts = directors.round_robin();
    @DIRECTOR@
}

sub vcl_recv {
    set req.backend_hint = hosts.backend();
    # The hosts decide whether a request is valid, also one with a body or a precondition, which would be lost here.
    if (req.http.Content-Length || req.http.Transfer-Encoding || req.http.If-Match || req.http.If-Unmodified-Since) {
        return (pass);
    }
    # Varnish answers 304 to every If-Modified-Since that is later than its response, although a failover or a restoration may have
    # lost the later state. With an ETag the time does not count; without one, the client gets the whole response.
    unset req.http.If-Modified-Since;
}

sub vcl_backend_response {
    # The service says for each response how long it may be used; never longer, also while no host responds.
    set beresp.grace = 0s;
    if (beresp.status == 200 && beresp.http.ETag && beresp.http.Cache-Control ~ "^public, no-cache") {
        # Store it for revalidation by its ETag. Without this, Varnish would not store it, and with a ttl of 0 never revalidate it.
        set beresp.ttl = 1ms;
        set beresp.keep = 1d;
        return (deliver);
    }
}

sub vcl_hit {
    # Varnish lets requests for the same address wait for one response. If that must be revalidated at each use, it may be older
    # than this request, so this request needs a response of its own.
    if (obj.http.Cache-Control ~ "no-cache") {
        return (pass);
    }
}

sub vcl_backend_error {
    # The other host, if this one does not respond.
    if (bereq.retries == 0 && (bereq.method == "GET" || bereq.method == "HEAD")) {
        set bereq.backend = hosts.backend();
        return (retry);
    }
    # The same response as that of the service in an outage.
    set beresp.status = 504;
    set beresp.http.Content-Type = "application/json";
    set beresp.http.Cache-Control = "no-store";
    set beresp.http.Retry-After = "5";
    set beresp.body = """{"detail":"No host of the service responds; try again later.","code":"service_unavailable"}""";
    return (deliver);
}
