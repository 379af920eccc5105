"""`python -m turnwarden` is the command line."""

import sys

from turnwarden.cli import main

if __name__ == "__main__":
    sys.exit(main())
