# CMake functions of Scalide. find_package(Scalide), add_subdirectory and FetchContent define them. They need the component `generator`.
#
# Paths are relative to the folder of the call. A change of a source, a rule file or a policy file triggers a new build of what depends on it.
# An unknown word, a word without a value and a word that occurs twice are errors.

# add_scalide_generator(<target> SOURCES <file>... [RULES <path>...])
#
# Adds an executable with your generators. It is the tool `scalide` with your programs in it: `<target> explain PROGRAM` needs no other options.
#
#   SOURCES <file>...   C++ files that include <scalide/generator.h> and register generators with SCALIDE_REGISTER_GENERATOR.
#   RULES <path>...     YAML files, or folders of YAML files, with operators of your own. The DSL gets a function for each of them.
#
# The executable contains the texts of RULES and the path of this installation. If the installation moves, pass the new path with --home or the
# environment variable SCALIDE_HOME.
#
# In a cross build, a CMake project in <target>.host builds the executable for the build machine, with the compiler that CMake finds there.
# <target> is then an imported executable, so SOURCES can include only files next to them and the headers of Scalide.
function(add_scalide_generator target)
    set(keywords SOURCES RULES)
    set(call "add_scalide_generator(${target})")
    cmake_parse_arguments(ARG "" "" "${keywords}" ${ARGN})
    _scalide_check_words("${call}" "${keywords}" ${ARGN})
    if(NOT DEFINED ARG_SOURCES)
        message(FATAL_ERROR "${call}: needs SOURCES")
    endif()
    _scalide_home("${call}" home)
    if(CMAKE_CROSSCOMPILING)
        _scalide_host_generator(${target})
        return()
    endif()
    set(header "${CMAKE_CURRENT_BINARY_DIR}/${target}.operators/scalide/operators.h")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}.operators/rules.cpp")
    _scalide_rules("${call}" rules dependencies)
    add_custom_command(OUTPUT "${header}" "${source}"
        COMMAND Scalide::scalide rules --home "${home}" ${rules} --header "${header}" --source "${source}"
        DEPENDS Scalide::scalide ${dependencies} COMMENT "Writing the operators of ${target}" VERBATIM)
    add_executable(${target} ${ARG_SOURCES} "${source}" "${header}")
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${target}.operators")
    target_link_libraries(${target} PRIVATE Scalide::generator)
endfunction()

# add_scalide_library(<target> PROGRAM <file.scl> [<option>...])
# add_scalide_library(<target> GENERATOR <generator> PROGRAM <name> [PARAMETERS <name>=<value>...] [<option>...])
# add_scalide_library(<target> OPERATORS <name>...|all [DTYPES <dtype>...] [<option>...])
# add_scalide_library(<target> OPERATORS_FILE <file.yaml> [<option>...])
#
# Adds a library of the kernels and the plan of a program. An executable that links <target> also links the runtime. The C header is
# "<target>.h", and the C function <target>_program returns the program. In C names, `_` replaces each character that is not a letter or a digit.
# install(TARGETS <target> EXPORT ...) installs the library and the header. Projects that use the export need the component `runtime`.
#
# What to build:
#   PROGRAM <file.scl>             A program in text form.
#   GENERATOR <generator>          A target of add_scalide_generator. PROGRAM is then the name of one of its generators.
#   PARAMETERS <name>=<value>...   Values for the GeneratorParams of the generator.
#   OPERATORS <name>...            A library with one function for each operator: LAX names, or `all`. Its C functions are
#                                  <target>_<operator>_<dtype>_program and <target>_<operator>_<dtype>_scaled_program.
#   OPERATORS_FILE <file.yaml>     A kernel list. The C function of a kernel is <target>_<kernel>_program. A change of the list, or of a policy
#                                  file that it names, triggers a new build.
#   DTYPES <dtype>...              With OPERATORS: the dtypes of the operands, such as f32 or f8_e4m3fn.
#
# Options:
#   NUMERICS <policy>     The precision policy: a built-in name (`scalide policies` lists them) or a .yaml file. Default: f32.
#   TARGET <target>       host, opencl, cuda, x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4+amx, or a Halide target such as
#                         x86-64-linux-avx2-fma-f16c. Default: host.
#   TARGETS <cpu>...      One library for several CPUs, such as x86-64-v2 x86-64-v3 x86-64-v4. scalide_bind takes the last one whose
#                         instructions the CPU has. Put the CPU with the fewest instructions first.
#   CUDA_ARCH <number>... With TARGET cuda: the compute capabilities to compile for, such as 90 100. Default: all that Scalide knows.
#   RULES <path>...       YAML files, or folders of YAML files, with operators of your own.
#   REQUIRE_LIBRARIES     With TARGET cuda: a matmul that cuBLASLt cannot compute is an error, when the library is generated or bound.
#   TRACEABLE             Store every rounded operand and every scale, so that scalide_run_traced can report them. This is slower on CPUs.
#   STATISTICS <N>        Collect statistics of all stored and rounded tensors in the steps 0, N, 2 * N, ... The library then has two forms of
#                         the program, and `scalide_run_collecting` runs the right one. Rows 'statistics' of the policy come first.
#   SHARED                A shared library instead of a static one.
#
# In a cross build, the default is the CPU of the toolchain file without extensions, such as arm-64-linux.
function(add_scalide_library target)
    set(flags REQUIRE_LIBRARIES TRACEABLE SHARED)
    set(single GENERATOR PROGRAM OPERATORS_FILE NUMERICS TARGET STATISTICS)
    set(several PARAMETERS OPERATORS DTYPES RULES CUDA_ARCH TARGETS)
    cmake_parse_arguments(ARG "${flags}" "${single}" "${several}" ${ARGN})
    set(call "add_scalide_library(${target})")
    _scalide_check_words("${call}" "${single};${several};${flags}" ${ARGN})
    _scalide_home("${call}" home)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.scalide")
    string(MAKE_C_IDENTIFIER "${target}" name)
    set(archive "${folder}/lib${name}.a")
    if(DEFINED ARG_OPERATORS)
        _scalide_refuse("${call}" OPERATORS OPERATORS_FILE GENERATOR PROGRAM PARAMETERS)
        set(generator Scalide::scalide)
        list(JOIN ARG_OPERATORS "," what)
        list(PREPEND what --operators)
        if(DEFINED ARG_DTYPES)
            list(JOIN ARG_DTYPES "," formats)
            list(APPEND what --dtypes ${formats})
        endif()
    elseif(DEFINED ARG_OPERATORS_FILE)
        _scalide_refuse("${call}" OPERATORS_FILE GENERATOR PROGRAM PARAMETERS DTYPES)
        set(generator Scalide::scalide)
        _scalide_kernel_list("${call}" what sources)
    else()
        _scalide_refuse("${call}" PROGRAM DTYPES)
        _scalide_program("${call}" what generator sources)
    endif()
    _scalide_rules("${call}" options dependencies)
    _scalide_check_operators("${call}" ${dependencies})
    _scalide_numerics("${call}" numerics policies)
    _scalide_target("${call}" machine environment)
    list(APPEND options ${machine})
    if(DEFINED ARG_CUDA_ARCH)
        list(JOIN ARG_CUDA_ARCH "," cards)
        list(APPEND options --cuda-arch "${cards}")
    endif()
    if(ARG_REQUIRE_LIBRARIES)
        list(APPEND options --require-libraries)
    endif()
    if(ARG_TRACEABLE)
        list(APPEND options --traceable)
    endif()
    if(DEFINED ARG_STATISTICS)
        if(NOT ARG_STATISTICS MATCHES "^[1-9][0-9]*$")
            message(FATAL_ERROR "${call}: STATISTICS must be a positive number of steps, got '${ARG_STATISTICS}'")
        endif()
        list(APPEND options --statistics=${ARG_STATISTICS})
    endif()
    foreach(parameter IN LISTS ARG_PARAMETERS)
        if(NOT parameter MATCHES "^[^=]+=")
            message(FATAL_ERROR "${call}: PARAMETERS must be name=value, got '${parameter}'")
        endif()
        list(APPEND options --parameter "${parameter}")
    endforeach()
    add_custom_command(OUTPUT "${archive}" "${folder}/${name}.h"
        COMMAND ${environment} "$<TARGET_FILE:${generator}>" build ${what} --home "${home}" ${options} ${numerics} --name "${target}" --output "${folder}"
        DEPENDS ${generator} ${dependencies} ${sources} ${policies} COMMENT "Generating ${target}" VERBATIM)
    _scalide_library_target(${target} "${folder}" "${name}" "${archive}")
endfunction()

# Makes a target of CMake out of the archive and the header that `scalide build` writes.
function(_scalide_library_target target folder name archive)
    # Only a library with a source can be installed and exported. The dependency of the source on the archive is the one that links again.
    set(source "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.scalide.cpp")
    if(CMAKE_C_COMPILER)
        string(REGEX REPLACE "pp$" "" source "${source}")
    endif()
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${name}.h\"\n")
    set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${archive}")
    if(ARG_SHARED)
        add_library(${target} SHARED "${source}" "${folder}/${name}.h")
        target_link_libraries(${target} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${archive}>")
    else()
        add_library(${target} STATIC "${source}" "${folder}/${name}.h")
        add_custom_command(TARGET ${target} POST_BUILD COMMAND "${CMAKE_COMMAND}" -E copy "${archive}" "$<TARGET_FILE:${target}>" VERBATIM)
    endif()
    set_target_properties(${target} PROPERTIES PUBLIC_HEADER "${folder}/${name}.h")
    target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${folder}>" $<INSTALL_INTERFACE:include>)
    target_link_libraries(${target} PUBLIC Scalide::runtime)
endfunction()

# Sets `result` to the folder share/scalide of the installation that has the generator.
function(_scalide_home call result)
    get_property(home GLOBAL PROPERTY SCALIDE_HOME)
    if(NOT home)
        set(way "find_package(Scalide REQUIRED COMPONENTS generator)")
        if(CMAKE_CROSSCOMPILING)
            set(way "cmake -DSCALIDE_HOST_PREFIX=PREFIX, with the prefix of an installation for the build machine")
        endif()
        message(FATAL_ERROR "${call}: needs the component 'generator' of Scalide. Use ${way}.")
    endif()
    set(${result} "${home}" PARENT_SCOPE)
endfunction()

# Takes the tool and the rules for a cross build from an installation for the build machine.
function(_scalide_use_host_prefix version)
    if(TARGET Scalide::scalide)
        return()
    endif()
    set(tool "${SCALIDE_HOST_PREFIX}/bin/scalide")
    execute_process(COMMAND "${tool}" --version OUTPUT_VARIABLE found ERROR_VARIABLE reason RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "SCALIDE_HOST_PREFIX must be the prefix of an installation of Scalide for the build machine, got "
                            "'${SCALIDE_HOST_PREFIX}': cannot run ${tool}: ${status} ${reason}")
    endif()
    if(NOT found VERSION_EQUAL version)
        message(FATAL_ERROR "SCALIDE_HOST_PREFIX must have Scalide ${version}, as the runtime, got ${found} in '${SCALIDE_HOST_PREFIX}'.")
    endif()
    add_executable(Scalide::scalide IMPORTED GLOBAL)
    set_target_properties(Scalide::scalide PROPERTIES IMPORTED_LOCATION "${tool}")
    set_property(GLOBAL PROPERTY SCALIDE_HOME "${SCALIDE_HOST_PREFIX}/share/scalide")
endfunction()

# Adds an executable for the build machine. The project in <target>.host builds it, and CMake is not told of the toolchain file.
function(_scalide_host_generator target)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.host")
    set(call "add_scalide_generator(${target}")
    foreach(keyword SOURCES RULES)
        string(APPEND call "\n    ${keyword}")
        foreach(path IN LISTS ARG_${keyword})
            get_filename_component(path "${path}" ABSOLUTE)
            string(APPEND call " [==[${path}]==]")
        endforeach()
        string(REGEX REPLACE "\n    ${keyword}$" "" call "${call}")
    endforeach()
    file(CONFIGURE OUTPUT "${folder}/CMakeLists.txt" @ONLY CONTENT "cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES C CXX)
find_package(Scalide REQUIRED COMPONENTS generator PATHS [==[@SCALIDE_HOST_PREFIX@]==] NO_DEFAULT_PATH)
@call@)
")
    string(REPLACE " Multi-Config" "" generator "${CMAKE_GENERATOR}")
    add_custom_target(${target}_host BYPRODUCTS "${folder}/build/${target}" COMMENT "Building ${target} for the build machine" VERBATIM
        COMMAND "${CMAKE_COMMAND}" -E env --unset=CMAKE_TOOLCHAIN_FILE --unset=CC --unset=CXX --unset=CFLAGS --unset=CXXFLAGS --unset=LDFLAGS
            "${CMAKE_COMMAND}" -S "${folder}" -B "${folder}/build" -G "${generator}" "-DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}"
            -DCMAKE_BUILD_TYPE=Release
        COMMAND "${CMAKE_COMMAND}" --build "${folder}/build")
    add_executable(${target} IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${folder}/build/${target}")
    add_dependencies(${target} ${target}_host)
endfunction()

# Sets `options` to the options for the machine that the library is for. In a cross build, sets `environment` to a command that names the C
# compiler of the toolchain file.
function(_scalide_target call options environment)
    set(cpus host x86-64-v2 x86-64-v3 x86-64-v4 x86-64-v4+amx)
    if(DEFINED ARG_TARGETS)
        _scalide_refuse("${call}" TARGETS TARGET CUDA_ARCH)
        _scalide_check_targets("${call}" CPU "${ARG_TARGETS}" ${cpus})
    else()
        _scalide_check_targets("${call}" target "${ARG_TARGET}" ${cpus} cuda opencl)
    endif()
    set(machines ${ARG_TARGET} ${ARG_TARGETS})
    list(JOIN machines "," machine)
    set(${environment} "" PARENT_SCOPE)
    if(CMAKE_CROSSCOMPILING)
        set(processors x86_64 x86-64 AMD64 x86-64 aarch64 arm-64 arm64 arm-64 armv7l arm-32 riscv64 riscv-64)
        list(FIND processors "${CMAKE_SYSTEM_PROCESSOR}" place)
        string(TOLOWER "${CMAKE_SYSTEM_NAME}" system)
        if(NOT machine AND place EQUAL -1)
            message(FATAL_ERROR "${call}: needs TARGET, because no Halide target is known for CMAKE_SYSTEM_PROCESSOR '${CMAKE_SYSTEM_PROCESSOR}'")
        elseif(machine MATCHES "(^|,)(host|cuda|opencl)(,|$)")
            message(FATAL_ERROR "${call}: in a cross build, TARGET must be a Halide target such as arm-64-linux, got '${machine}'")
        elseif(NOT machine)
            math(EXPR place "${place} + 1")
            list(GET processors ${place} processor)
            set(machine "${processor}-${system}")
        endif()
        set(compiler "${CMAKE_C_COMPILER}")
        if(CMAKE_SYSROOT)
            string(APPEND compiler " --sysroot=${CMAKE_SYSROOT}")
        endif()
        set(${environment} "${CMAKE_COMMAND}" -E env "CC=${compiler}" PARENT_SCOPE)
    endif()
    set(${options} "" PARENT_SCOPE)
    if(machine)
        set(${options} --target "${machine}" PARENT_SCOPE)
    endif()
endfunction()

# Stops at a target that is neither one of the names in ARGN nor has the form of a Halide target. The tool checks the features of such a target.
function(_scalide_check_targets call noun targets)
    foreach(target IN LISTS targets)
        if(NOT target IN_LIST ARGN AND NOT target MATCHES "^[a-z0-9]+-[0-9]+-[a-z]+(-[a-z0-9_]+)*$")
            _scalide_known(known "${target}" ${ARGN})
            message(FATAL_ERROR "${call}: unknown ${noun} '${target}'. ${known}, or a Halide target such as x86-64-linux-avx2-fma-f16c")
        endif()
    endforeach()
endfunction()

# Sets `what` to the program that `scalide build` gets, `generator` to the executable that builds it, and `sources` to the file that it reads.
function(_scalide_program call what generator sources)
    set(${sources} "" PARENT_SCOPE)
    if(NOT DEFINED ARG_PROGRAM)
        message(FATAL_ERROR "${call}: needs PROGRAM, OPERATORS or OPERATORS_FILE")
    endif()
    if(ARG_PROGRAM MATCHES "\\.scl$")
        _scalide_file("${call}" PROGRAM "${ARG_PROGRAM}" file)
        set(${what} "${file}" PARENT_SCOPE)
        set(${sources} "${file}" PARENT_SCOPE)
    elseif(NOT DEFINED ARG_GENERATOR)
        message(FATAL_ERROR "${call}: without GENERATOR, PROGRAM must be a .scl file, got '${ARG_PROGRAM}'")
    elseif(NOT ARG_PROGRAM MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
        message(FATAL_ERROR "${call}: with GENERATOR, PROGRAM must be the name of a registered generator, got '${ARG_PROGRAM}'")
    else()
        set(${what} "${ARG_PROGRAM}" PARENT_SCOPE)
    endif()
    if(NOT DEFINED ARG_GENERATOR)
        set(${generator} Scalide::scalide PARENT_SCOPE)
        return()
    endif()
    if(NOT TARGET "${ARG_GENERATOR}")
        message(FATAL_ERROR "${call}: GENERATOR must be a target of add_scalide_generator, got '${ARG_GENERATOR}'")
    endif()
    set(${generator} "${ARG_GENERATOR}" PARENT_SCOPE)
endfunction()

# Sets `what` to the options for ARG_OPERATORS_FILE, and `sources` to the kernel list and the policy files that it names.
function(_scalide_kernel_list call what sources)
    _scalide_file("${call}" OPERATORS_FILE "${ARG_OPERATORS_FILE}" file)
    set(files "${file}")
    if(EXISTS "${file}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
        get_filename_component(folder "${file}" DIRECTORY)
        file(STRINGS "${file}" lines REGEX "numerics: *[^ ,}]+\\.yaml")
        foreach(line IN LISTS lines)
            string(REGEX REPLACE ".*numerics: *([^ ,}]+\\.yaml).*" "\\1" policy "${line}")
            get_filename_component(policy "${policy}" ABSOLUTE BASE_DIR "${folder}")
            list(APPEND files "${policy}")
        endforeach()
    endif()
    set(${what} --operators "${file}" PARENT_SCOPE)
    set(${sources} "${files}" PARENT_SCOPE)
endfunction()

# Sets `options` to the options for ARG_NUMERICS, and `files` to the policy file and the files that it extends.
function(_scalide_numerics call options files)
    set(read "")
    if(NOT DEFINED ARG_NUMERICS)
        set(${options} "" PARENT_SCOPE)
    elseif(ARG_NUMERICS MATCHES "\\.yaml$")
        _scalide_file("${call}" NUMERICS "${ARG_NUMERICS}" file)
        set(${options} --numerics "${file}" PARENT_SCOPE)
        while(EXISTS "${file}" AND NOT file IN_LIST read)
            list(APPEND read "${file}")
            set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
            file(STRINGS "${file}" extends REGEX "extends: *[^ ,}]+\\.yaml" LIMIT_COUNT 1)
            if(extends)
                string(REGEX REPLACE ".*extends: *([^ ,}]+\\.yaml).*" "\\1" extends "${extends}")
                get_filename_component(folder "${file}" DIRECTORY)
                get_filename_component(file "${extends}" ABSOLUTE BASE_DIR "${folder}")
            endif()
        endwhile()
    else()
        file(GLOB names RELATIVE "${home}/rules/policies" "${home}/rules/policies/*.yaml")
        list(TRANSFORM names REPLACE "\\.yaml$" "")
        if(NOT ARG_NUMERICS IN_LIST names)
            _scalide_known(known "${ARG_NUMERICS}" ${names})
            message(FATAL_ERROR "${call}: NUMERICS must be a built-in policy or a .yaml file, got '${ARG_NUMERICS}'. ${known}")
        endif()
        set(${options} --numerics "${ARG_NUMERICS}" PARENT_SCOPE)
    endif()
    set(${files} "${read}" PARENT_SCOPE)
endfunction()

# Sets `result` to the absolute path of a file or folder. Stops if it does not exist and no rule of this folder generates it.
function(_scalide_file call keyword path result)
    get_filename_component(path "${path}" ABSOLUTE)
    get_source_file_property(generated "${path}" GENERATED)
    if(NOT EXISTS "${path}" AND NOT generated)
        message(FATAL_ERROR "${call}: ${keyword} must exist, got '${path}'")
    endif()
    set(${result} "${path}" PARENT_SCOPE)
endfunction()

# Stops at an unknown keyword, at a keyword without a value and at a keyword that occurs twice. Reads the ARG_ variables of its caller.
# CMake takes an unknown keyword for one more value of the keyword before it. Values are never in capitals, so capitals show an unknown keyword.
function(_scalide_check_words call keywords)
    set(unknown ${ARG_UNPARSED_ARGUMENTS})
    foreach(value IN LISTS ARG_SOURCES ARG_RULES ARG_PARAMETERS ARG_OPERATORS ARG_DTYPES ARG_CUDA_ARCH ARG_TARGETS)
        if(value MATCHES "^[A-Z][A-Z_]*$")
            list(APPEND unknown "${value}")
        endif()
    endforeach()
    if(unknown)
        list(GET unknown 0 word)
        _scalide_known(known "${word}" ${keywords})
        message(FATAL_ERROR "${call}: unknown keyword '${word}'. ${known}")
    endif()
    if(ARG_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "${call}: ${ARG_KEYWORDS_MISSING_VALUES} needs a value")
    endif()
    set(seen "")
    foreach(word IN LISTS ARGN)
        if(word IN_LIST keywords AND word IN_LIST seen)
            message(FATAL_ERROR "${call}: ${word} is given twice")
        endif()
        list(APPEND seen "${word}")
    endforeach()
endfunction()

# Stops if one of the other keywords is used together with `keyword`.
function(_scalide_refuse call keyword)
    foreach(other IN LISTS ARGN)
        if(DEFINED ARG_${other})
            message(FATAL_ERROR "${call}: ${other} cannot be used with ${keyword}")
        endif()
    endforeach()
endfunction()

# Sets `result` to all names, after "Did you mean X?" if there is a similar name.
function(_scalide_known result word)
    list(JOIN ARGN ", " all)
    _scalide_suggestion(suggestion "${word}" ${ARGN})
    set(${result} "${suggestion}One of: ${all}" PARENT_SCOPE)
endfunction()

# Sets `result` to "Did you mean X? " if a name shares its first two or more letters with the word, else to an empty text.
function(_scalide_suggestion result word)
    string(LENGTH "${word}" length)
    foreach(left RANGE ${length})
        math(EXPR count "${length} - ${left}")
        string(SUBSTRING "${word}" 0 ${count} start)
        foreach(name IN LISTS ARGN)
            string(FIND "${name}" "${start}" place)
            if(place EQUAL 0 AND count GREATER 1)
                set(${result} "Did you mean '${name}'? " PARENT_SCOPE)
                return()
            endif()
        endforeach()
    endforeach()
    set(${result} "" PARENT_SCOPE)
endfunction()

# Stops at a name in ARG_OPERATORS that no rule file defines.
function(_scalide_check_operators call)
    set(names all)
    foreach(file IN LISTS ARGN)
        file(STRINGS "${file}" lines REGEX "^op: ")
        list(TRANSFORM lines REPLACE "^op: *([A-Za-z0-9_]+).*" "\\1")
        list(APPEND names ${lines})
    endforeach()
    foreach(name IN LISTS ARG_OPERATORS)
        if(NOT name IN_LIST names)
            _scalide_suggestion(suggestion "${name}" ${names})
            message(FATAL_ERROR "${call}: unknown operator '${name}'. ${suggestion}'scalide rules' lists the operators.")
        endif()
    endforeach()
endfunction()

# Sets `options` to the options for ARG_RULES, and `dependencies` to these files and the rule files of Scalide.
function(_scalide_rules call options dependencies)
    set(list "")
    file(GLOB_RECURSE files CONFIGURE_DEPENDS "${home}/rules/*.yaml")
    foreach(path IN LISTS ARG_RULES)
        _scalide_file("${call}" RULES "${path}" path)
        list(APPEND list --rules "${path}")
        if(IS_DIRECTORY "${path}")
            file(GLOB_RECURSE inside CONFIGURE_DEPENDS "${path}/*.yaml")
            list(APPEND files ${inside})
        else()
            list(APPEND files "${path}")
        endif()
    endforeach()
    set(${options} "${list}" PARENT_SCOPE)
    set(${dependencies} "${files}" PARENT_SCOPE)
endfunction()
