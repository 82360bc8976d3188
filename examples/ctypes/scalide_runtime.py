"""The C interface of Scalide's runtime for ctypes: the part of scalide.h that this example needs."""
import ctypes
from ctypes import POINTER, byref, c_char_p, c_float, c_int32, c_int64, c_size_t, c_void_p

MAX_RANK = 8


class Array(ctypes.Structure):
    """scalide_array"""

    _fields_ = [("data", c_void_p), ("scale", POINTER(c_float)), ("dtype", c_int32), ("rank", c_int32),
                ("extent", c_int64 * MAX_RANK), ("stride", c_int64 * MAX_RANK)]  # fmt: skip


#: The result type and the argument types of each function. Handles are void pointers.
FUNCTIONS = {
    "scalide_dtype_name": (c_char_p, [c_int32]),
    "scalide_status_string": (c_char_p, [c_int32]),
    "scalide_dense_array": (Array, [c_void_p, POINTER(c_float), c_int32, c_int32, POINTER(c_int64)]),
    "scalide_context_create": (c_int32, [c_void_p, POINTER(c_void_p)]),
    "scalide_context_destroy": (None, [c_void_p]),
    "scalide_message": (c_char_p, [c_void_p]),
    "scalide_load": (c_int32, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "scalide_library_program": (c_void_p, [c_void_p, c_void_p, c_char_p]),
    "scalide_library_close": (None, [c_void_p]),
    "scalide_argument_count": (c_size_t, [c_void_p]),
    "scalide_find_argument": (c_int32, [c_void_p, c_char_p]),
    "scalide_bind": (c_int32, [c_void_p, c_void_p, POINTER(Array), c_size_t, POINTER(c_void_p)]),
    "scalide_run": (c_int32, [c_void_p]),
    "scalide_binding_destroy": (None, [c_void_p]),
}


class Error(Exception):
    """A failure of the runtime, with its message."""


class Runtime:
    """The shared library libscalide_runtime.so.0 and one context."""

    def __init__(self, path="libscalide_runtime.so.0"):
        self.library = ctypes.CDLL(path)
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        self.context = c_void_p()
        status = self.library.scalide_context_create(None, byref(self.context))
        if status != 0:
            raise Error(self.library.scalide_status_string(status).decode())
        self.f32 = next(number for number in range(32) if self.library.scalide_dtype_name(number) == b"f32")

    def check(self, status):
        if status != 0:
            raise Error(self.library.scalide_message(self.context).decode())

    def load(self, path):
        """Opens a library that `scalide build --shared` wrote."""
        library = c_void_p()
        self.check(self.library.scalide_load(self.context, str(path).encode(), byref(library)))
        return library

    def program(self, library, name):
        program = self.library.scalide_library_program(self.context, library, name.encode())
        if not program:
            raise Error(self.library.scalide_message(self.context).decode())
        return program

    def array(self, memory, *shape):
        """Describes a ctypes array of c_float as an array of this shape. Keep `memory` as long as its bindings."""
        data = ctypes.cast(memory, c_void_p)
        return self.library.scalide_dense_array(data, None, self.f32, len(shape), (c_int64 * len(shape))(*shape))

    def call(self, program, **arrays):
        """Binds arrays by the names of the arguments, runs once, and destroys the binding."""
        count = self.library.scalide_argument_count(program)
        in_order = (Array * count)()
        for name, array in arrays.items():
            index = self.library.scalide_find_argument(program, name.encode())
            if index < 0:
                raise Error(f"the program has no argument '{name}'")
            in_order[index] = array
        binding = c_void_p()
        self.check(self.library.scalide_bind(self.context, program, in_order, count, byref(binding)))
        try:
            self.check(self.library.scalide_run(binding))
        finally:
            self.library.scalide_binding_destroy(binding)

    def close(self):
        self.library.scalide_context_destroy(self.context)
