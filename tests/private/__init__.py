"""The study lte-private with the kernel's TCP: ``make studies-emulated``."""
