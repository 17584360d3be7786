"""Managers of what several pods share: image pulls, probes, dead containers, config objects."""
