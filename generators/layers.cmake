# A unity build compiles twelve sources of a layer as one, which takes about half of the processor time. So names in anonymous namespaces must
# differ within a layer. To compile each source by itself: cmake -DSCALIDE_UNITY_BUILD=OFF.
option(SCALIDE_UNITY_BUILD "Compile several sources of the code generator as one" ON)

# scalide_optimize(<target> <level>): the target is compiled with -O<level> in the configuration Release, in place of CMake's -O3.
# Passes run as fast with -O2, and -O3 takes up to two thirds longer to compile. `scalide build` spends its time in Halide and LLVM, not in the
# layers with -O1, which compile in 0.7 of the time.
function(scalide_optimize target level)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O${level}>)
endfunction()

# scalide_layer(<name> [UNITY] [OPTIMIZE <level>] [WINGS <folders>] [LINK <libraries>] [PRECOMPILE <headers>] [PRECOMPILED_BY <layer>]):
# Defines the static library of one folder, from every .cpp file in it and in its wings (subfolders). Include paths start at the parent folder
# ("ir/program.h"). A layer can only include the layers that it links. The usual level of optimization is 2.
# Users include installed headers by other names (tool/installed_headers.cmake).
function(scalide_layer name)
    cmake_parse_arguments(ARG "UNITY" "OPTIMIZE;PRECOMPILED_BY" "WINGS;LINK;PRECOMPILE" ${ARGN})
    list(TRANSFORM ARG_WINGS REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/${name}/\\1/*.cpp" OUTPUT_VARIABLE wings)
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp" ${wings})
    add_library(scalide_${name} STATIC ${sources})
    target_include_directories(scalide_${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>)
    target_link_libraries(scalide_${name} PUBLIC ${ARG_LINK})
    target_precompile_headers(scalide_${name} PRIVATE ${ARG_PRECOMPILE})
    if(ARG_PRECOMPILED_BY)
        target_precompile_headers(scalide_${name} REUSE_FROM scalide_${ARG_PRECOMPILED_BY})
    endif()
    if(ARG_UNITY AND SCALIDE_UNITY_BUILD)
        set_target_properties(scalide_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    endif()
    if(NOT DEFINED ARG_OPTIMIZE)
        set(ARG_OPTIMIZE 2)
    endif()
    scalide_optimize(scalide_${name} ${ARG_OPTIMIZE})
    # GCC 12 gives false warnings about "x" + std::string (PR 105651) and Location{}.
    target_compile_options(scalide_${name} PRIVATE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
endfunction()
