"""Settings of hosts for a path: derived from it, judged by simulation, applied and undone."""
