"""Channels, one adapter file each, registered by being here: what comes in becomes events, what goes out is sent."""
