"""The Kafka side: the runtime that all processors share, the processors, gateway, demo and CLI."""
