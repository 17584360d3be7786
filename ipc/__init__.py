"""What crosses a process boundary, and nothing else."""
