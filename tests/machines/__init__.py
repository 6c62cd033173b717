"""The tests of Python with other programs in PATH."""
