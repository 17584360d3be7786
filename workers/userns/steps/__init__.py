"""The steps that `workers.userns.entry` knows. They run in an interpreter without site packages, in the way of a
container's start, so they need little, and only of the standard library."""
