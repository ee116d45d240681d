"""What persists of a turn: the rules that choose it, and the one step that writes the memory register."""
