"""Access to the server's ports: TLS, users, authorization, and the filter that every request passes first."""
