"""``python -m adjudge``: the command line, for where the script is not on the path."""

from adjudge.cli import main

if __name__ == "__main__":
    main()
