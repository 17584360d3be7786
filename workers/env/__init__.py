"""A container's environment: variables, files of variables, downward API, expansion; and redaction of Secret values."""
