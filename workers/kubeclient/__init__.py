"""Client of a cluster's API server: credentials, exchanges over TLS, rate limit, retries, watches and reflectors."""
