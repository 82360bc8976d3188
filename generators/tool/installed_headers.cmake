# Writes the headers of the generators to the folder TO in their installed form. In the source tree they include each other as "ir/type.h". The
# installed headers include "scalide/generator/ir/type.h" instead, so that a header "ir/type.h" of the user's project does not replace them.
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
foreach(header generator.h loops.h loss_scaling.h optimizers.h tensor.h)
    write_header("${FROM}/frontend/include/scalide/${header}" "${TO}/${header}")
endforeach()
