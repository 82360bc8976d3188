# scalide_layer(<name> [WINGS <folders>] [LINK <libraries>] [PRECOMPILE <headers>]): the static library of one folder, from every .cpp in it
# and in its wings. Its includes start at the parent folder ("ir/program.h"), and it can only include what it links: the layers of design order.
# Users include installed headers by other names (tool/installed_headers.cmake).
function(scalide_layer name)
    cmake_parse_arguments(ARG "" "" "WINGS;LINK;PRECOMPILE" ${ARGN})
    list(TRANSFORM ARG_WINGS REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/${name}/\\1/*.cpp" OUTPUT_VARIABLE wings)
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp" ${wings})
    add_library(scalide_${name} STATIC ${sources})
    target_include_directories(scalide_${name} PUBLIC
        $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
    target_link_libraries(scalide_${name} PUBLIC ${ARG_LINK})
    target_precompile_headers(scalide_${name} PRIVATE ${ARG_PRECOMPILE})
    # GCC 12 warns without cause about "x" + std::string (PR 105651) and Location{}.
    target_compile_options(scalide_${name} PRIVATE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
endfunction()
