"""The kernel's TCP over a scenario's network: the run, its observers, its requirements."""
