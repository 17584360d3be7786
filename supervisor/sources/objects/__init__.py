"""Objects that sources state: decoded, identified, and merged into one set with its differences. Pure, but for one.

``decode`` and ``kinds`` make objects of what `supervisor.sources.documents` has parsed; ``apart`` does so in a program
of its own where that may be costly; ``merge`` turns each source's whole set into ADD / UPDATE / REMOVE / RECONCILE /
DELETE.
"""
