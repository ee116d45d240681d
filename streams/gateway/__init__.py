"""The web channel: events in over HTTP, messages out as server-sent events from an outbox of its own."""
