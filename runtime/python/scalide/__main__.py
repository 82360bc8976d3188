"""python -m scalide: runs the command-line tool."""
from .tool import main

main()
