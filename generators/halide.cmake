# Sets SCALIDE_HALIDE_LIBRARY and defines the target Halide::Halide. If the caller allows it, this file gets the wheel of Halide from PyPI.
# The CMake package in the wheel needs CMake 3.28, but Debian 12 has 3.25.
if(SCALIDE_FETCH_HALIDE AND NOT SCALIDE_HALIDE_ROOT)
    include("${CMAKE_CURRENT_LIST_DIR}/fetch_wheel.cmake")
    scalide_fetch_halide("${fetched_halide}" "${SCALIDE_HALIDE_VERSION}" "${Python3_EXECUTABLE}")
    set(SCALIDE_HALIDE_ROOT "${fetched_halide}/halide")
endif()
find_library(SCALIDE_HALIDE_LIBRARY Halide PATHS "${SCALIDE_HALIDE_ROOT}/lib64" NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
if(NOT SCALIDE_HALIDE_LIBRARY)
    message(FATAL_ERROR "Halide ${SCALIDE_HALIDE_VERSION} not found: SCALIDE_HALIDE_ROOT must be the `halide` folder of the unpacked PyPI wheel, "
                        "got '${SCALIDE_HALIDE_ROOT}'. Use -DSCALIDE_FETCH_HALIDE=ON to fetch it, or run ./demo.")
endif()
add_library(Halide::Halide SHARED IMPORTED GLOBAL)
set_target_properties(Halide::Halide PROPERTIES
    IMPORTED_LOCATION "${SCALIDE_HALIDE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SCALIDE_HALIDE_ROOT}/include")
