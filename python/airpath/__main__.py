"""``python -m airpath``, and the command ``airpath``."""

from airpath.base.signals import end_at_once


def main() -> None:
    """Import the command line and run it; SIGINT may come meanwhile."""
    end_at_once()
    from airpath.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
