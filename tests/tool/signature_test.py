"""An application that was compiled with the header of another build: bind refuses it if the arguments differ. Two libraries with programs of one
name in one application are found in the same way, because the application gets the program of the first library.

Usage: signature_test.py SCALIDE SOURCE RUNTIME
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from tool import Scratch  # noqa: E402

PROGRAM = "program mix(%s) -> (y: f32[n]) {\n  y = sub(a, b)\n}\n"
APPLICATION = r"""#include "mix.h"
#include <stdio.h>

int main(void) {
    static float a[4] = {5, 5, 5, 5}, b[4] = {1, 1, 1, 1}, y[4];
    const int64_t n = 4;
    scalide_context *context;
    scalide_binding *binding = (scalide_binding *)a;
    mix_arrays arrays;
    arrays.a = scalide_dense_array(a, NULL, SCALIDE_F32, 1, &n);
    arrays.b = scalide_dense_array(b, NULL, SCALIDE_F32, 1, &n);
    arrays.y = scalide_dense_array(y, NULL, SCALIDE_F32, 1, &n);
    if (scalide_context_create(NULL, &context)) return 2;
    if (mix_bind(context, &arrays, &binding)) {
        puts(scalide_message(context));
        return binding ? 3 : 1;
    }
    if (scalide_run(binding)) return 4;
    printf("a - b = %g\n", y[0]);
    scalide_binding_destroy(binding);
    scalide_context_destroy(context);
    return 0;
}
"""
REFUSED = (
    "mix: the application was compiled with a header that has other arguments than the library. Compile it again with the header of this "
    "library, and check that no other library has a program of this name. The library has {}.\n"
)


class Application:
    def __init__(self, scratch, source, runtime):
        self.scratch, self.source, self.runtime = scratch, source, runtime

    def cc(self, *arguments):
        subprocess.run([os.environ.get("CC", "cc"), *arguments], cwd=self.scratch.path, check=True)

    def build_library(self, folder, arguments, *options):
        self.scratch.write("mix.scl", PROGRAM % arguments)
        self.scratch.succeed("build", "mix.scl", "-o", folder, *options)

    def compile(self, folder):
        self.scratch.write("main.c", APPLICATION)
        self.cc("-std=c99", "-c", "main.c", "-I", f"{self.source}/runtime/include", "-I", folder)

    def run(self, *libraries):
        self.cc("main.o", *(f"{folder}/libmix.a" for folder in libraries), self.runtime, "-lpthread", "-ldl", "-lm", "-o", "main")
        result = subprocess.run([self.scratch.path / "main"], stdout=subprocess.PIPE, encoding="utf-8", check=False)
        return result.returncode, result.stdout


def main(tool, source, runtime):
    with Scratch(tool) as scratch:
        application = Application(scratch, source, runtime)
        application.build_library("lib", "a: f32[n], b: f32[n]")
        application.compile("lib")
        assert application.run("lib") == (0, "a - b = 4\n")
        application.build_library("again", "a: f32[n], b: f32[n]", "--target", "x86-64-v2")
        assert application.run("again") == (0, "a - b = 4\n"), "other kernels, the same arguments"
        for arguments, words in (
            ("b: f32[n], a: f32[n]", "b: f32[n], a: f32[n], y: f32[n]"),
            ("a: f32[n], b: f32[n] constant", "a: f32[n], b: f32[n], y: f32[n]"),
            ("b: f32[n], a: f32[n], c: f32[n]", "b: f32[n], a: f32[n], c: f32[n], y: f32[n]"),
        ):
            application.build_library("other", arguments)
            assert application.run("other") == (1, REFUSED.format(words)), arguments
        application.build_library("other", "b: f32[n], a: f32[n]")
        assert application.run("lib", "other") == (0, "a - b = 4\n"), "the linker takes the first library"
        assert application.run("other", "lib") == (1, REFUSED.format("b: f32[n], a: f32[n], y: f32[n]"))


if __name__ == "__main__":
    main(*sys.argv[1:])
