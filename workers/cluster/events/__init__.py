"""Events of this node and its pods, as the API server keeps them: names, repetitions, limits."""
