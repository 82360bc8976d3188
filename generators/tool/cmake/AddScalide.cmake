# CMake functions of Scalide. find_package(Scalide) defines them.
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
function(add_scalide_generator target)
    set(keywords SOURCES RULES)
    cmake_parse_arguments(ARG "" "" "${keywords}" ${ARGN})
    _scalide_check_words("add_scalide_generator(${target})" "${keywords}" ${ARGN})
    if(NOT DEFINED ARG_SOURCES)
        message(FATAL_ERROR "add_scalide_generator(${target}): needs SOURCES")
    endif()
    set(header "${CMAKE_CURRENT_BINARY_DIR}/${target}.operators/scalide/operators.h")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}.operators/rules.cpp")
    _scalide_rules(rules dependencies ${ARG_RULES})
    add_custom_command(OUTPUT "${header}" "${source}"
        COMMAND Scalide::scalide rules --home "${SCALIDE_HOME}" ${rules} --header "${header}" --source "${source}"
        DEPENDS Scalide::scalide ${dependencies} COMMENT "Writing the operators of ${target}" VERBATIM)
    add_executable(${target} ${ARG_SOURCES} "${source}" "${header}")
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${target}.operators")
    target_link_libraries(${target} PRIVATE Scalide::generator)
endfunction()

# add_scalide_library(<target> PROGRAM <file.scl> [<option>...])
# add_scalide_library(<target> GENERATOR <generator> PROGRAM <name> [PARAMETERS <name>=<value>...] [<option>...])
# add_scalide_library(<target> OPERATORS <name>...|all [DTYPES <dtype>...] [<option>...])
#
# Adds a static library of the kernels and the plan of a program. An executable that links <target> also links the runtime. The C header is
# "<target>.h", and the C function <target>_program returns the program. In C names, `_` replaces each character that is not a letter or a digit.
#
# What to build:
#   PROGRAM <file.scl>             A program in text form.
#   GENERATOR <generator>          A target of add_scalide_generator. PROGRAM is then the name of one of its generators.
#   PARAMETERS <name>=<value>...   Values for the GeneratorParams of the generator.
#   OPERATORS <name>...            A library with one function for each operator: LAX names, or `all`. Its C functions are
#                                  <target>_<operator>_<dtype>_program and <target>_<operator>_<dtype>_scaled_program.
#   DTYPES <dtype>...              With OPERATORS: the dtypes of the operands, such as f32 or f8_e4m3fn.
#
# Options:
#   NUMERICS <policy>     The precision policy: a built-in name (`scalide policies` lists them) or a .yaml file. Default: f32.
#   TARGET <target>       host, opencl, cuda, or a Halide target such as x86-64-linux-avx2-fma-f16c. Default: host.
#   CUDA_ARCH <number>... With TARGET cuda: the compute capabilities to compile for, such as 90 100. Default: all that Scalide knows.
#   RULES <path>...       YAML files, or folders of YAML files, with operators of your own.
#   TRACEABLE             Store every rounded operand and every scale, so that scalide_run_traced can report them. This is slower on CPUs.
function(add_scalide_library target)
    set(single GENERATOR PROGRAM NUMERICS TARGET)
    set(several PARAMETERS OPERATORS DTYPES RULES CUDA_ARCH)
    cmake_parse_arguments(ARG TRACEABLE "${single}" "${several}" ${ARGN})
    set(call "add_scalide_library(${target})")
    _scalide_check_words("${call}" "${single};${several};TRACEABLE" ${ARGN})
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.scalide")
    string(MAKE_C_IDENTIFIER "${target}" name)
    set(archive "${folder}/lib${name}.a")
    if(DEFINED ARG_OPERATORS)
        _scalide_refuse("${call}" OPERATORS GENERATOR PROGRAM PARAMETERS)
        set(generator Scalide::scalide)
        list(JOIN ARG_OPERATORS "," what)
        list(PREPEND what --operators)
        if(DEFINED ARG_DTYPES)
            list(JOIN ARG_DTYPES "," formats)
            list(APPEND what --dtypes ${formats})
        endif()
    else()
        _scalide_refuse("${call}" PROGRAM DTYPES)
        _scalide_program("${call}" what generator sources)
    endif()
    _scalide_rules(options dependencies ${ARG_RULES})
    _scalide_numerics("${call}" numerics policies)
    if(DEFINED ARG_TARGET)
        list(APPEND options --target "${ARG_TARGET}")
    endif()
    if(DEFINED ARG_CUDA_ARCH)
        list(JOIN ARG_CUDA_ARCH "," cards)
        list(APPEND options --cuda-arch "${cards}")
    endif()
    if(ARG_TRACEABLE)
        list(APPEND options --traceable)
    endif()
    foreach(parameter ${ARG_PARAMETERS})
        list(APPEND options --parameter "${parameter}")
    endforeach()
    add_custom_command(OUTPUT "${archive}" "${folder}/${name}.h"
        COMMAND ${generator} build ${what} --home "${SCALIDE_HOME}" ${options} ${numerics} --name "${target}" --output "${folder}"
        DEPENDS ${generator} ${dependencies} ${sources} ${policies} COMMENT "Generating ${target}" VERBATIM)
    add_custom_target(${target}_generate DEPENDS "${archive}")
    add_library(${target} INTERFACE)
    add_dependencies(${target} ${target}_generate)
    target_include_directories(${target} INTERFACE "${folder}")
    target_link_libraries(${target} INTERFACE "${archive}" Scalide::runtime)
endfunction()

# Sets `what` to the program that `scalide build` gets, `generator` to the executable that builds it, and `sources` to the file that it reads.
function(_scalide_program call what generator sources)
    set(${sources} "" PARENT_SCOPE)
    if(NOT DEFINED ARG_PROGRAM)
        message(FATAL_ERROR "${call}: needs PROGRAM or OPERATORS")
    endif()
    if(ARG_PROGRAM MATCHES "\\.scl$")
        _scalide_file("${call}" PROGRAM "${ARG_PROGRAM}" file)
        set(${what} "${file}" PARENT_SCOPE)
        set(${sources} "${file}" PARENT_SCOPE)
    elseif(NOT DEFINED ARG_GENERATOR)
        message(FATAL_ERROR "${call}: without GENERATOR, PROGRAM must be a .scl file, got '${ARG_PROGRAM}'")
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
        file(GLOB names RELATIVE "${SCALIDE_HOME}/rules/policies" "${SCALIDE_HOME}/rules/policies/*.yaml")
        list(TRANSFORM names REPLACE "\\.yaml$" "")
        if(NOT ARG_NUMERICS IN_LIST names)
            _scalide_known(known "${ARG_NUMERICS}" ${names})
            message(FATAL_ERROR "${call}: NUMERICS must be a built-in policy or a .yaml file, got '${ARG_NUMERICS}'. ${known}")
        endif()
        set(${options} --numerics "${ARG_NUMERICS}" PARENT_SCOPE)
    endif()
    set(${files} "${read}" PARENT_SCOPE)
endfunction()

# Sets `result` to the absolute path of a file. Stops if the file does not exist and no rule of this folder generates it.
function(_scalide_file call keyword path result)
    get_filename_component(path "${path}" ABSOLUTE)
    get_source_file_property(generated "${path}" GENERATED)
    if(NOT EXISTS "${path}" AND NOT generated)
        message(FATAL_ERROR "${call}: ${keyword} must be an existing file, got '${path}'")
    endif()
    set(${result} "${path}" PARENT_SCOPE)
endfunction()

# Stops at an unknown keyword, at a keyword without a value and at a keyword that occurs twice. Reads the ARG_ variables of its caller.
# CMake takes an unknown keyword for one more value of the keyword before it. Values are never in capitals, so capitals show an unknown keyword.
function(_scalide_check_words call keywords)
    set(unknown ${ARG_UNPARSED_ARGUMENTS})
    foreach(value IN LISTS ARG_SOURCES ARG_RULES ARG_PARAMETERS ARG_OPERATORS ARG_DTYPES ARG_CUDA_ARCH)
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

# Sets `result` to all names, after "Did you mean X?" if a name shares its first two or more letters with the word.
function(_scalide_known result word)
    list(JOIN ARGN ", " all)
    string(LENGTH "${word}" length)
    foreach(left RANGE ${length})
        math(EXPR count "${length} - ${left}")
        string(SUBSTRING "${word}" 0 ${count} start)
        foreach(name IN LISTS ARGN)
            string(FIND "${name}" "${start}" place)
            if(place EQUAL 0 AND count GREATER 1)
                set(${result} "Did you mean '${name}'? One of: ${all}" PARENT_SCOPE)
                return()
            endif()
        endforeach()
    endforeach()
    set(${result} "One of: ${all}" PARENT_SCOPE)
endfunction()

# Sets `options` to the options for rule files and folders, and `dependencies` to these files and the rule files of Scalide.
function(_scalide_rules options dependencies)
    set(list "")
    file(GLOB_RECURSE files CONFIGURE_DEPENDS "${SCALIDE_HOME}/rules/*.yaml")
    foreach(path ${ARGN})
        get_filename_component(path "${path}" ABSOLUTE)
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
