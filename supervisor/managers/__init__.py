"""Managers of what several pods share: image pulls, probes, container garbage, config objects."""
