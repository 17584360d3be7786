"""Local storage of pods, held to its limits, and signals of pressure on the node, with each pod's part in it."""
