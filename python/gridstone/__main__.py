"""`python -m gridstone`: the command line."""

from .cli import main

main()
