"""Replies: approved wording in two languages, and the gate that keeps claims true."""
