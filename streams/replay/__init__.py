"""The read side: what happened in a session, from the topics alone. Touches nothing (promise 8)."""
