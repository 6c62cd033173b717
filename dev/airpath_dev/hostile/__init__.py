"""What happens to an emulation when a program inside is hostile or unlucky: ``make hostile``."""
