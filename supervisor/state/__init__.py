"""Files that outlive the agent, when they are written, and locks on its directories."""
