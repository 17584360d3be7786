"""Shared memory: the board, mutation slots, breaker states."""
