#include "loaded_program.h"
#include <Python.h>

namespace scalide::python {

// A run asks for the GIL while it holds the mutex (check_signals in module.cpp). So no thread may wait for the mutex with the GIL.
std::unique_lock<std::recursive_mutex> SharedContext::lock() {
    std::unique_lock held(mutex_, std::try_to_lock);
    if (held) return held;
    PyThreadState *const state = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
    held.lock();
    if (state) PyEval_RestoreThread(state);
    return held;
}

} // namespace scalide::python
