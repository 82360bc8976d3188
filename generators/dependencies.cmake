
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_library(SCALIDE_JEMALLOC_LIBRARY jemalloc DOC "The allocator of the tool; without it builds take longer")
if(NOT SCALIDE_JEMALLOC_LIBRARY)
    message(STATUS "jemalloc not found (Debian: libjemalloc-dev): the tool uses the system allocator and takes up to twice as long")
endif()

# The CMake package in the wheel needs CMake 3.28, but Debian 12 has 3.25.
set(SCALIDE_HALIDE_ROOT "${SCALIDE_HALIDE_ROOT}" CACHE PATH "The `halide` folder of the unpacked wheel halide==${SCALIDE_HALIDE_VERSION}")
option(SCALIDE_FETCH_HALIDE "If SCALIDE_HALIDE_ROOT is empty, get the wheel from PyPI (needs pip and a network)" OFF)
if(SCALIDE_FETCH_HALIDE AND NOT SCALIDE_HALIDE_ROOT)
    set(folder "${PROJECT_BINARY_DIR}/halide-${SCALIDE_HALIDE_VERSION}")
    if(NOT EXISTS "${folder}/halide")
        find_package(Python3 REQUIRED COMPONENTS Interpreter)
        message(STATUS "Fetching Halide ${SCALIDE_HALIDE_VERSION} from PyPI into ${folder}")
        execute_process(COMMAND "${Python3_EXECUTABLE}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:
            --python-version 3.12 -d "${folder}" halide==${SCALIDE_HALIDE_VERSION} RESULT_VARIABLE status ERROR_VARIABLE reason)
        if(NOT status EQUAL 0)
            message(FATAL_ERROR "cannot fetch Halide ${SCALIDE_HALIDE_VERSION} with pip: ${reason}Set SCALIDE_HALIDE_ROOT to the `halide` folder of "
                                "the unpacked wheel, or install pip and connect to a network.")
        endif()
        file(GLOB wheel "${folder}/halide-*.whl")
        file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${folder}")
        file(REMOVE "${wheel}")
    endif()
    set(SCALIDE_HALIDE_ROOT "${folder}/halide")
endif()
find_library(SCALIDE_HALIDE_LIBRARY Halide PATHS "${SCALIDE_HALIDE_ROOT}/lib64" NO_DEFAULT_PATH)
if(NOT SCALIDE_HALIDE_LIBRARY)
    message(FATAL_ERROR "Halide ${SCALIDE_HALIDE_VERSION} not found: SCALIDE_HALIDE_ROOT must be the `halide` folder of the unpacked PyPI wheel, "
                        "got '${SCALIDE_HALIDE_ROOT}'. Use -DSCALIDE_FETCH_HALIDE=ON to fetch it, or run ./demo.")
endif()
add_library(Halide::Halide SHARED IMPORTED GLOBAL)
set_target_properties(Halide::Halide PROPERTIES
    IMPORTED_LOCATION "${SCALIDE_HALIDE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SCALIDE_HALIDE_ROOT}/include")
