"""Commands that go into a pod: a process, a port, a file of it."""
