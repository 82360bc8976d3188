# add_scalide_generator(<target> SOURCES <files> [RULES <yaml files or folders>])
#
# An executable of the user's generators (SCALIDE_REGISTER_GENERATOR): the tool `scalide` with these programs in it. Sources include
# <scalide/generator.h>; the operators of RULES have DSL functions as ours have.
function(add_scalide_generator target)
    cmake_parse_arguments(ARG "" "" "SOURCES;RULES" ${ARGN})
    set(header "${CMAKE_CURRENT_BINARY_DIR}/${target}.operators/scalide/operators.h")
    _scalide_rules(rules dependencies ${ARG_RULES})
    add_custom_command(OUTPUT "${header}"
        COMMAND Scalide::scalide rules --home "${SCALIDE_HOME}" ${rules} --header "${header}"
        DEPENDS Scalide::scalide ${dependencies} COMMENT "Writing the operators of ${target}" VERBATIM)
    add_executable(${target} ${ARG_SOURCES} "${header}")
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${target}.operators")
    target_link_libraries(${target} PRIVATE Scalide::generator)
    set_target_properties(${target} PROPERTIES SCALIDE_RULES "${ARG_RULES}")
endfunction()

# add_scalide_library(<target> GENERATOR <generator> PROGRAM <name> [NUMERICS <policy>] [TARGET <target>] [PARAMETERS name=value ...])
#
# A static library of the program's kernels and plan: its C function is `<target>_program`, its header "<target>.h". Linking it links
# the runtime.
function(add_scalide_library target)
    cmake_parse_arguments(ARG "" "GENERATOR;PROGRAM;NUMERICS;TARGET" "PARAMETERS" ${ARGN})
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.scalide")
    set(archive "${folder}/lib${target}.a")
    get_target_property(given "${ARG_GENERATOR}" SCALIDE_RULES)
    if(NOT given)
        set(given "")
    endif()
    _scalide_rules(options dependencies ${given})
    if(ARG_NUMERICS)
        list(APPEND options --numerics "${ARG_NUMERICS}")
        if(EXISTS "${ARG_NUMERICS}")
            list(APPEND dependencies "${ARG_NUMERICS}")
        endif()
    endif()
    if(ARG_TARGET)
        list(APPEND options --target "${ARG_TARGET}")
    endif()
    foreach(parameter ${ARG_PARAMETERS})
        list(APPEND options --parameter "${parameter}")
    endforeach()
    add_custom_command(OUTPUT "${archive}" "${folder}/${target}.h"
        COMMAND ${ARG_GENERATOR} build "${ARG_PROGRAM}" --home "${SCALIDE_HOME}" ${options} --name "${target}" --output "${folder}"
        DEPENDS ${ARG_GENERATOR} ${dependencies} COMMENT "Generating ${target}" VERBATIM)
    add_custom_target(${target}_generate DEPENDS "${archive}")
    add_library(${target} INTERFACE)
    add_dependencies(${target} ${target}_generate)
    target_include_directories(${target} INTERFACE "${folder}")
    target_link_libraries(${target} INTERFACE "${archive}" Scalide::runtime)
endfunction()

# Options and dependencies of rule files and folders, ours among them.
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
