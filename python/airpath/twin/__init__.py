"""One scenario, both drivers: the simulated TCP against the kernel's, seed by seed."""
