"""The lte-cubic-hystart study's downloads by the kernel's TCP: ``make hystart``."""
