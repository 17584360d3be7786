"""Chaos on the real thing: a seeded storm of faults over an agent on real Podman, and what survived it.

`python -m tests.chaos --seed N --minutes M --pods P` (inside `configs/host/enter`). The plan of faults is made from the
seed before the run; what each of them hits depends on timing. Only processes of this run's agent, its containers and
the Podman service that it started are ever touched.
"""
