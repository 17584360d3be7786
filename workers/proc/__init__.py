"""Reads and ends processes: /proc, pidfds, tags that processes inherit, peers of sockets."""
