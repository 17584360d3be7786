"""Objects that sources state: decoded, identified, and merged into one set with its differences. Pure.

``decode`` and ``kinds`` make objects of what `supervisor.sources.documents` has parsed; ``merge`` turns each source's
whole set into ADD / UPDATE / REMOVE / RECONCILE / DELETE.
"""
