"""Values and protocols that cross a process boundary, and nothing else."""
