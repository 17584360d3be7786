"""`rootlet load-test`: many pods through the admin socket of a running agent, and what that costs."""
