"""State of each pod in the master: phase, worker, newest observation, queue; which pod harms its worker."""
