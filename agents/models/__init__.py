"""Models behind a port: what they are asked, how their form is checked, and what of it counts. No I/O."""
