# Varnish in front of the service: the key is a constant here, so nothing is asked. @NAME@ is filled in by starting.py.
vcl 4.1;

backend service {
    .host = "127.0.0.1";
    .port = "@PORT@";
}

sub vcl_recv {
    if (req.http.x-api-key != "@KEY@") {
        return (synth(401));
    }
    return (hash);
}

sub vcl_backend_response {
    # what the service says to partners about keeping is not meant for a cache that checks keys itself
    unset beresp.http.Cache-Control;
    unset beresp.http.Vary;
    set beresp.ttl = 1d;
}
