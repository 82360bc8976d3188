# Writes the generators' headers to TO as users include them. In the tree they include each other as "ir/type.h"; installed they do so as
# "scalide/generator/ir/type.h": a user's own ir/type.h, which may stand before ours on the include path, is another file.
# Usage: cmake -D FROM=generators -D TO=folder -P installed_headers.cmake
file(REMOVE_RECURSE "${TO}")
function(write_header from to)
    file(READ "${from}" text)
    string(REGEX REPLACE "#include \"(expr|ir|rulebook|frontend)/" "#include \"scalide/generator/\\1/" text "${text}")
    file(WRITE "${to}" "${text}")
endfunction()
foreach(layer expr ir rulebook frontend)
    file(GLOB headers RELATIVE "${FROM}" "${FROM}/${layer}/*.h")
    foreach(header ${headers})
        write_header("${FROM}/${header}" "${TO}/generator/${header}")
    endforeach()
endforeach()
write_header("${FROM}/tool/tool.h" "${TO}/generator/tool/tool.h")
foreach(header generator.h tensor.h)
    write_header("${FROM}/frontend/include/scalide/${header}" "${TO}/${header}")
endforeach()
