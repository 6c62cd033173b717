"""Causes that are planted at random, and captures of them: `make findings-captures`."""
