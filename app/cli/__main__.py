"""`python -m app.cli`: the `steward` command."""

from app.cli import main

main()
