# scalide_fetch_halide(<folder> <version> <python>): gets the wheel of Halide from PyPI into the folder, unless it is there.
function(scalide_fetch_halide folder version python)
    if(EXISTS "${folder}/halide")
        return()
    endif()
    message(STATUS "Fetching Halide ${version} from PyPI into ${folder}")
    execute_process(COMMAND "${python}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:
        --python-version 3.12 -d "${folder}" halide==${version} RESULT_VARIABLE status ERROR_VARIABLE reason)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "cannot fetch Halide ${version} with pip: ${reason}Set SCALIDE_HALIDE_ROOT to the `halide` folder of "
                            "the unpacked wheel, or connect to a network.")
    endif()
    file(GLOB wheel "${folder}/halide-*.whl")
    file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${folder}")
    file(REMOVE "${wheel}")
endfunction()
