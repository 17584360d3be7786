"""OpenTelemetry traces: spans of the processes, put together to traces of syncs and probes, and sent by OTLP."""
