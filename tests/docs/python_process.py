"""Runs the Python blocks of a page: reads {"code", "file", "line"} as lines of JSON, answers each with {"printed", "error"}."""
import json
import os
import sys
import tempfile
import traceback


def main():
    # What the blocks print goes to a file by descriptor 1, so that prints of native code and of child processes count.
    answers = os.fdopen(os.dup(1), "w")
    output = tempfile.TemporaryFile()
    os.dup2(output.fileno(), 1)
    sys.path.insert(0, os.getcwd())
    names = {"__name__": "page"}
    for line in sys.stdin:
        block = json.loads(line)
        error = None
        output.seek(0)
        output.truncate()
        try:
            exec(compile("\n" * block["line"] + block["code"], block["file"], "exec"), names)
        except BaseException:
            error = traceback.format_exc()
        sys.stdout.flush()
        output.seek(0)
        print(json.dumps({"printed": output.read().decode(errors="replace"), "error": error}), file=answers, flush=True)


main()
