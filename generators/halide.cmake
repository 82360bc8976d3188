# Sets SCALIDE_HALIDE_LIBRARY and defines the target Halide::Halide. If the caller allows it, this file gets the wheel of Halide from PyPI.
# The CMake package in the wheel needs CMake 3.28, but Debian 12 has 3.25.
if(SCALIDE_FETCH_HALIDE AND NOT SCALIDE_HALIDE_ROOT)
    if(NOT EXISTS "${fetched_halide}/halide")
        message(STATUS "Fetching Halide ${SCALIDE_HALIDE_VERSION} from PyPI into ${fetched_halide}")
        execute_process(COMMAND "${Python3_EXECUTABLE}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:
            --python-version 3.12 -d "${fetched_halide}" halide==${SCALIDE_HALIDE_VERSION} RESULT_VARIABLE status ERROR_VARIABLE reason)
        if(NOT status EQUAL 0)
            message(FATAL_ERROR "cannot fetch Halide ${SCALIDE_HALIDE_VERSION} with pip: ${reason}Set SCALIDE_HALIDE_ROOT to the `halide` folder of "
                                "the unpacked wheel, or connect to a network.")
        endif()
        file(GLOB wheel "${fetched_halide}/halide-*.whl")
        file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${fetched_halide}")
        file(REMOVE "${wheel}")
    endif()
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
