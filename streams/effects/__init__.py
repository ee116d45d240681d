"""What runs declared effects: tool calls and sends over HTTP, each ending in one fact."""
