"""What the kernel says of processes: /proc, pidfds, tags that processes inherit, sockets' peers."""
