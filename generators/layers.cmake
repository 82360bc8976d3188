# scalide_layer(<name> [LINK <libraries>] [PRECOMPILE <headers>]): the static library of one folder, from every .cpp in it. Its includes
# start at the parent folder ("ir/program.h"), and it can only include what it links: the layers of design order.
function(scalide_layer name)
    cmake_parse_arguments(ARG "" "" "LINK;PRECOMPILE" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp")
    add_library(scalide_${name} STATIC ${sources})
    target_include_directories(scalide_${name} PUBLIC
        $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/scalide/generator>)
    target_link_libraries(scalide_${name} PUBLIC ${ARG_LINK})
    target_precompile_headers(scalide_${name} PRIVATE ${ARG_PRECOMPILE})
    # GCC 12 warns without cause about "x" + std::string (PR 105651) and Location{}.
    target_compile_options(scalide_${name} PRIVATE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
endfunction()
