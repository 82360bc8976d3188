# A script: builds the tool and the runtime in BUILD (shared_build.cmake). It configures the folder with the initial cache CACHE if nothing has
# configured it, or if its CMake or Ninja are gone: pip may have had them in a temporary environment.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/fetch_wheel.cmake")

# The entry of a cache, or an empty text.
function(read_cache variable name)
    file(STRINGS "${BUILD}/CMakeCache.txt" line REGEX "^${name}:[A-Z]+=")
    string(REGEX REPLACE "^[^=]*=" "" line "${line}")
    set(${variable} "${line}" PARENT_SCOPE)
endfunction()

set(is_configured NO)
if(EXISTS "${BUILD}/build.ninja" AND EXISTS "${BUILD}/CMakeCache.txt")
    read_cache(command CMAKE_COMMAND)
    read_cache(program CMAKE_MAKE_PROGRAM)
    if(EXISTS "${command}" AND EXISTS "${program}")
        set(is_configured YES)
    endif()
endif()
if(NOT is_configured)
    # CMake would remember the Python of an environment that may be temporary.
    file(STRINGS "${CACHE}" own_halide REGEX "SCALIDE_HALIDE_ROOT")
    file(STRINGS "${CACHE}" fetch REGEX "SCALIDE_FETCH_HALIDE .*(ON|TRUE|1)")
    if(fetch AND NOT own_halide)
        scalide_fetch_halide("${BUILD}/halide-${HALIDE_VERSION}" "${HALIDE_VERSION}" "${PYTHON}")
    endif()
    file(STRINGS "${CACHE}" own_plotly REGEX "SCALIDE_PLOTLY_ROOT")
    if(fetch AND NOT own_plotly)
        scalide_fetch_plotly("${BUILD}/plotly-${PLOTLY_VERSION}" "${PLOTLY_VERSION}" "${PYTHON}")
    endif()
    execute_process(COMMAND "${CMAKE_COMMAND}" -C "${CACHE}" -S "${SOURCES}" -B "${BUILD}" -G Ninja COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --target scalide scalide_runtime scalide_runtime_shared COMMAND_ERROR_IS_FATAL ANY)
