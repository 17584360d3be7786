"""The transport to Podman's libpod API: exchanges with deadlines, decoding, streams, circuit breaker, health."""
