# scalide_fetch_wheel(<folder> <package> <version> <python> <reason>): gets a wheel from PyPI and unpacks it into the folder, unless the folder
# contains the package. The variable `reason` receives the message of pip if it fails; otherwise it is empty.
function(scalide_fetch_wheel folder package version python reason)
    set(${reason} "" PARENT_SCOPE)
    if(EXISTS "${folder}/${package}")
        return()
    endif()
    message(STATUS "Fetching ${package} ${version} from PyPI into ${folder}")
    execute_process(COMMAND "${python}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:
        --python-version 3.12 -d "${folder}" ${package}==${version} RESULT_VARIABLE status ERROR_VARIABLE message)
    if(NOT status EQUAL 0)
        set(${reason} "${message}" PARENT_SCOPE)
        return()
    endif()
    file(GLOB wheel "${folder}/${package}-*.whl")
    file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${folder}")
    file(REMOVE "${wheel}")
endfunction()

# scalide_fetch_halide(<folder> <version> <python>): without Halide, nothing can be built.
function(scalide_fetch_halide folder version python)
    scalide_fetch_wheel("${folder}" halide "${version}" "${python}" reason)
    if(NOT reason STREQUAL "")
        message(FATAL_ERROR "cannot fetch Halide ${version} with pip: ${reason}Set SCALIDE_HALIDE_ROOT to the `halide` folder of "
                            "the unpacked wheel, or connect to a network.")
    endif()
endfunction()

# scalide_fetch_plotly(<folder> <version> <python>): without plotly, everything but `scalide report` works.
function(scalide_fetch_plotly folder version python)
    scalide_fetch_wheel("${folder}" plotly "${version}" "${python}" reason)
    if(NOT reason STREQUAL "")
        message(WARNING "cannot fetch plotly ${version} with pip: ${reason}`scalide report` needs it. Set SCALIDE_PLOTLY_ROOT to the `plotly` "
                        "folder of the unpacked wheel, or connect to a network and configure again.")
    endif()
endfunction()
