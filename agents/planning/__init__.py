"""Planning: which flow moves, what is asked, called and said, and when a person takes over."""
