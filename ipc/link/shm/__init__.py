"""Shared memory: the board and the observations on it, mutation slots, breaker states."""
