# pip compiles the tool and the runtime in the build folder of ./demo and ./check, so neither compiles again what the other one has compiled.
# The build of pip (build/wheel) is then a second build, which has only the Python module. It runs the first one in build (run_shared_build.cmake).
# If the folder has other settings than pip, build/wheel compiles everything.

# What decides how the tool and the runtime are compiled.
set(scalide_settings CMAKE_BUILD_TYPE CMAKE_TOOLCHAIN_FILE CMAKE_C_COMPILER CMAKE_CXX_COMPILER CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
    CMAKE_C_FLAGS CMAKE_CXX_FLAGS CMAKE_C_FLAGS_RELEASE CMAKE_CXX_FLAGS_RELEASE CMAKE_EXE_LINKER_FLAGS CMAKE_SHARED_LINKER_FLAGS
    SCALIDE_BUILD_GENERATORS SCALIDE_BUILD_SHARED_RUNTIME SCALIDE_HALIDE_ROOT SCALIDE_PLOTLY_ROOT SCALIDE_XXHASH_INCLUDE SCALIDE_DTL_INCLUDE SCALIDE_JEMALLOC_LIBRARY
    yaml-cpp_DIR fmt_DIR CLI11_DIR nlohmann_json_DIR)

# scalide_describe_settings(<variable>): the settings of this build, one in a line. A compiler may have several names.
function(scalide_describe_settings variable)
    set(text "sources ${PROJECT_SOURCE_DIR}\ngenerator ${CMAKE_GENERATOR}\n")
    foreach(name IN LISTS scalide_settings)
        set(value "${${name}}")
        if(name MATCHES "_COMPILER$")
            file(REAL_PATH "${value}" value)
        endif()
        string(APPEND text "${name} ${value}\n")
    endforeach()
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# scalide_find_shared_build(<variable> <settings>): the folder that this build shares, or an empty text.
function(scalide_find_shared_build variable settings)
    set(${variable} "" PARENT_SCOPE)
    file(REAL_PATH "${PROJECT_BINARY_DIR}" here)
    file(REAL_PATH "${PROJECT_SOURCE_DIR}/build" folder)
    if(NOT "$ENV{SCALIDE_BUILD_DIR}" STREQUAL "")
        file(REAL_PATH "$ENV{SCALIDE_BUILD_DIR}" folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    elseif(NOT here STREQUAL "${folder}/wheel")
        return() # the user chose a folder for this build
    endif()
    if(here STREQUAL folder)
        return()
    endif()
    set(others "")
    if(EXISTS "${folder}/settings.txt")
        file(READ "${folder}/settings.txt" others)
    endif()
    set(words "${CMAKE_C_COMPILER_ARG1}${CMAKE_CXX_COMPILER_ARG1}") # of a compiler in CC or CXX that has more than one word
    if(NOT CMAKE_GENERATOR STREQUAL "Ninja" OR NOT words STREQUAL "" OR (EXISTS "${folder}/CMakeCache.txt" AND NOT others STREQUAL settings))
        message(STATUS "${folder} has other settings, so the tool and the runtime are compiled in ${here}")
        return()
    endif()
    message(STATUS "The tool and the runtime are compiled in ${folder}")
    set(${variable} "${folder}" PARENT_SCOPE)
endfunction()

# scalide_use_shared_build(<folder>): the target scalide_shared_build builds the tool and the runtime there, scalide_runtime is the library, and
# the component python_tool comes from the shared build.
function(scalide_use_shared_build folder)
    find_package(Threads REQUIRED)
    find_program(SCALIDE_FLOCK flock REQUIRED DOC "Two builds of a shared folder wait for each other with this program (util-linux)")
    set(cache "set(SCALIDE_FETCH_HALIDE [===[${SCALIDE_FETCH_HALIDE}]===] CACHE STRING \"\")\n")
    string(APPEND cache "set(CMAKE_MAKE_PROGRAM [===[${CMAKE_MAKE_PROGRAM}]===] CACHE FILEPATH \"\" FORCE)\n")
    foreach(name IN LISTS scalide_settings)
        if(NOT "${${name}}" STREQUAL "")
            string(APPEND cache "set(${name} [===[${${name}}]===] CACHE STRING \"\")\n")
        endif()
    endforeach()
    file(WRITE "${PROJECT_BINARY_DIR}/shared_build_cache.cmake" "${cache}")

    set(library "${folder}/runtime/libscalide_runtime.a")
    add_custom_target(scalide_shared_build BYPRODUCTS "${library}" USES_TERMINAL VERBATIM COMMENT "Building the tool and the runtime in ${folder}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
        COMMAND "${SCALIDE_FLOCK}" --close "${folder}/lock" "${CMAKE_COMMAND}" -D "SOURCES=${PROJECT_SOURCE_DIR}" -D "BUILD=${folder}"
            -D "CACHE=${PROJECT_BINARY_DIR}/shared_build_cache.cmake" -D "HALIDE_VERSION=${SCALIDE_HALIDE_VERSION}" -D "PLOTLY_VERSION=${SCALIDE_PLOTLY_VERSION}"
            -D "PYTHON=${Python_EXECUTABLE}"
            -P "${PROJECT_SOURCE_DIR}/generators/run_shared_build.cmake")
    add_library(scalide_runtime STATIC IMPORTED GLOBAL)
    add_dependencies(scalide_runtime scalide_shared_build)
    set_target_properties(scalide_runtime PROPERTIES IMPORTED_LOCATION "${library}"
        INTERFACE_INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}/runtime/include" INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
    install(CODE "set(strip \"\")
        if(CMAKE_INSTALL_DO_STRIP)
            set(strip --strip)
        endif()
        execute_process(COMMAND \"${SCALIDE_FLOCK}\" --close \"${folder}/lock\" \"${CMAKE_COMMAND}\" --install \"${folder}\"
            --component python_tool --prefix \"\${CMAKE_INSTALL_PREFIX}\" \${strip} COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT python_tool EXCLUDE_FROM_ALL)
endfunction()
