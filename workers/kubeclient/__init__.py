"""Client of a cluster: credentials, exchanges, rate limit, retries, watches, reflectors."""
