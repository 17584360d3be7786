"""Parts of every handler: queries, errors as v1 Status, the listener, open sockets. Knows no resource."""
