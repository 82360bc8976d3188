"""python -m scalide: the command line tool."""
from .tool import main

main()
