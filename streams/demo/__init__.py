"""The demo: an example shop and scripted customers."""
