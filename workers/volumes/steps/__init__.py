"""The steps that `workers.volumes.inside` knows: what is done in Podman's user and mount namespace.

They run in an interpreter without site packages, so they need nothing but the standard library and what does not
either; and they are in the way of a container's start, so they need little of it.
"""
