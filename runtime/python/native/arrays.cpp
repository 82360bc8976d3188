#include "arrays.h"
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#include <algorithm>
#include <cstdlib>
#include <numpy/arrayobject.h>

namespace scalide::python {

namespace nb = nanobind;

namespace {

PyArray_Descr *descriptions[SCALIDE_DTYPE_COUNT]; // never released

std::string text_of(const nb::handle &object) { return nb::str(object).c_str(); }

PyArrayObject *as_array(const nb::handle &object, const Wanted &wanted) {
    if (PyArray_Check(object.ptr())) return reinterpret_cast<PyArrayObject *>(object.ptr());
    throw nb::type_error((wanted.name + ": must be an array, got " + text_of(object.type())).c_str());
}

int32_t dtype_of(PyArrayObject *array, const Wanted &wanted) {
    const int number = PyArray_TYPE(array);
    for (int32_t i = 0; i < SCALIDE_DTYPE_COUNT; ++i) {
        if (descriptions[i] && descriptions[i]->type_num == number) return i;
    }
    throw nb::type_error((wanted.name + ": dtype must be " + scalide_dtype_name(wanted.dtype) + ", got " +
                          text_of(reinterpret_cast<PyObject *>(PyArray_DESCR(array))) + ". Convert the array.")
                             .c_str());
}

/// Returns the dtype in which an array is read. 64-bit NumPy dtypes count as 32-bit dtypes, as in JAX, unless the program takes i64.
int32_t read_dtype_of(PyArrayObject *array, const Wanted &wanted) {
    const bool is_wide = PyArray_ITEMSIZE(array) == 8;
    const char kind = PyArray_DESCR(array)->kind;
    if (is_wide && kind == 'i' && wanted.dtype == SCALIDE_I64) return SCALIDE_I64;
    const int32_t narrow = kind == 'f' ? SCALIDE_F32 : kind == 'i' ? SCALIDE_I32 : SCALIDE_U32;
    const bool stands_for_it = is_wide && (kind == 'f' || kind == 'i' || kind == 'u') && wanted.dtype == narrow;
    return stands_for_it ? narrow : dtype_of(array, wanted);
}

scalide_array describe(PyArrayObject *array, int32_t dtype) {
    scalide_array view = {};
    view.dtype = dtype;
    view.rank = PyArray_NDIM(array);
    view.data = PyArray_DATA(array);
    const npy_intp size = PyArray_ITEMSIZE(array);
    for (int i = 0; i < std::min(view.rank, SCALIDE_MAX_RANK); ++i) {
        view.extent[i] = PyArray_DIM(array, i);
        view.stride[i] = PyArray_STRIDE(array, i) / size;
    }
    return view;
}

} // namespace

void set_dtypes(const nb::dict &dtypes) {
    if (_import_array() < 0) throw nb::python_error();
    for (int32_t i = 0; i < SCALIDE_DTYPE_COUNT; ++i) {
        const nb::object dtype = dtypes.get(scalide_dtype_name(i), nb::none());
        if (!dtype.is_none()) descriptions[i] = reinterpret_cast<PyArray_Descr *>(nb::object(dtype).release().ptr());
    }
}

nb::object to_numpy(const scalide_array &array, Memory memory) {
    npy_intp extents[SCALIDE_MAX_RANK];
    std::copy(array.extent, array.extent + array.rank, extents);
    PyArray_Descr *description = descriptions[array.dtype];
    Py_INCREF(description);
    nb::object owner = nb::capsule(memory.get(), [](void *data) noexcept { std::free(data); });
    void *data = memory.release();
    PyObject *result = PyArray_NewFromDescr(&PyArray_Type, description, array.rank, extents, nullptr, data, NPY_ARRAY_CARRAY, nullptr);
    if (!result) throw nb::python_error();
    nb::object made = nb::steal(result);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(result), owner.release().ptr()) < 0) throw nb::python_error();
    return made;
}

nb::object scalar_to_numpy(float value) {
    PyObject *result = PyArray_SimpleNew(0, nullptr, NPY_FLOAT);
    if (!result) throw nb::python_error();
    *static_cast<float *>(PyArray_DATA(reinterpret_cast<PyArrayObject *>(result))) = value;
    return nb::steal(result);
}

scalide_array view_input(const nb::handle &object, const Wanted &wanted, std::vector<nb::object> &keep) {
    PyArrayObject *array = as_array(object, wanted);
    const int32_t dtype = read_dtype_of(array, wanted);
    PyArray_Descr *native = descriptions[dtype];
    if (PyArray_ISCARRAY_RO(array) && native->type_num == PyArray_TYPE(array)) return describe(array, dtype);
    Py_INCREF(native);
    PyObject *copy = PyArray_FromArray(array, native, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_FORCECAST);
    if (!copy) throw nb::python_error();
    keep.push_back(nb::steal(copy));
    return describe(reinterpret_cast<PyArrayObject *>(copy), dtype);
}

bool is_updatable(const nb::handle &object, const scalide_array &view) {
    auto *array = reinterpret_cast<PyArrayObject *>(object.ptr());
    const bool aligned = view.rank == 0 || reinterpret_cast<uintptr_t>(view.data) % alignment == 0;
    return aligned && PyArray_ISCARRAY(array) && PyArray_DATA(array) == view.data; // else view_input made a copy
}

scalide_array view_output(const nb::handle &object, const Wanted &wanted) {
    PyArrayObject *array = as_array(object, wanted);
    const scalide_array view = describe(array, dtype_of(array, wanted));
    if (!PyArray_ISCARRAY(array)) {
        throw nb::value_error((wanted.name + ": must be contiguous, aligned and writable, because a run writes it. "
                                             "Make one with scalide.empty.")
                                  .c_str());
    }
    return view;
}

float *view_scale(const nb::handle &object, const Wanted &wanted) {
    PyArrayObject *array = as_array(object, wanted);
    if (PyArray_TYPE(array) != NPY_FLOAT || PyArray_NDIM(array) != 0 || !PyArray_ISCARRAY(array)) {
        throw nb::type_error((wanted.name + ".scale: must be a writable f32 scalar array. Use numpy.ones((), 'float32').").c_str());
    }
    return static_cast<float *>(PyArray_DATA(array));
}

} // namespace scalide::python
