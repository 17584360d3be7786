"""Files that outlive the agent, and locks on its directories."""
