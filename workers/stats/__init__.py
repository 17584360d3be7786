"""Collects statistics of the node, its pods and containers while somebody asks for them; one small module a source."""
