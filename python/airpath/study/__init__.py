"""Published experiments: what a study's file says, and how its figures are reproduced."""
