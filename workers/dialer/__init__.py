"""Opens sockets inside pods' network namespaces: the dialer process, and the client that asks it."""
