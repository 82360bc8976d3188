# Installs two components. `runtime` is what applications link. `generator` is the tool, the rules and the library for generators in C++.
# `python_tool` is what the Python package adds to its own component: the tool, its data, the runtime and libHalide.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Scalide")
set(module_folder "${PROJECT_SOURCE_DIR}/generators/tool/cmake")

set(part COMPONENT runtime)
install(TARGETS scalide_runtime EXPORT ScalideRuntimeTargets ${part})
set(pkg_config_files scalide-runtime.pc)
if(TARGET scalide_runtime_shared)
    # The link without a version is in a folder of its own. So `-lscalide_runtime` links the static library, and kernels find its hooks there.
    install(TARGETS scalide_runtime_shared EXPORT ScalideRuntimeTargets LIBRARY NAMELINK_SKIP ${part})
    set(name_link "${PROJECT_BINARY_DIR}/shared_runtime/libscalide_runtime.so")
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/shared_runtime")
    file(CREATE_LINK "../libscalide_runtime.so.${SCALIDE_SOVERSION}" "${name_link}" SYMBOLIC)
    install(FILES "${name_link}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/scalide" ${part})
    list(APPEND pkg_config_files scalide-runtime-shared.pc)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" ${part} PATTERN README.md EXCLUDE)
install(EXPORT ScalideRuntimeTargets NAMESPACE Scalide:: DESTINATION "${package_folder}" ${part})
set(SHARE "${CMAKE_INSTALL_DATADIR}/scalide")
set(LIBRARY "${CMAKE_INSTALL_LIBDIR}")
configure_package_config_file("${module_folder}/ScalideConfig.cmake.in" "${PROJECT_BINARY_DIR}/ScalideConfig.cmake"
    INSTALL_DESTINATION "${package_folder}" PATH_VARS SHARE LIBRARY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ScalideConfigVersion.cmake" VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ScalideConfig.cmake" "${PROJECT_BINARY_DIR}/ScalideConfigVersion.cmake" "${module_folder}/AddScalide.cmake"
    DESTINATION "${package_folder}" ${part})
file(RELATIVE_PATH PREFIX_FROM_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
foreach(file IN LISTS pkg_config_files)
    configure_file("${module_folder}/${file}.in" "${PROJECT_BINARY_DIR}/${file}" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" ${part})
endforeach()

# A project that adds Scalide with add_subdirectory installs only what its own libraries need.
if(NOT SCALIDE_BUILD_GENERATORS OR NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()
set(part COMPONENT generator)
set(layers scalide_expr scalide_ir scalide_kinds scalide_rulebook scalide_transforms scalide_interpret scalide_frontend scalide_lower scalide_schedules
    scalide_emit scalide_tool)
install(TARGETS ${layers} scalide_generator scalide EXPORT ScalideGeneratorTargets ${part})
install(EXPORT ScalideGeneratorTargets NAMESPACE Scalide:: DESTINATION "${package_folder}" ${part})
set_property(TARGET scalide APPEND PROPERTY INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/scalide")
install(DIRECTORY "${PROJECT_BINARY_DIR}/installed_headers/scalide" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" ${part})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/rules" DESTINATION "${CMAKE_INSTALL_DATADIR}/scalide" ${part})
install(FILES "${SCALIDE_HALIDE_LIBRARY}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/scalide" ${part})

set(part COMPONENT python_tool EXCLUDE_FROM_ALL)
install(TARGETS scalide RUNTIME DESTINATION scalide/_install/bin ${part})
install(TARGETS scalide_runtime ARCHIVE DESTINATION "scalide/_install/${CMAKE_INSTALL_LIBDIR}" ${part})
if(TARGET scalide_runtime_shared) # without the link, because a wheel would contain it as a second copy
    install(TARGETS scalide_runtime_shared LIBRARY DESTINATION "scalide/_install/${CMAKE_INSTALL_LIBDIR}" NAMELINK_SKIP ${part})
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include" DESTINATION scalide/_install ${part} PATTERN README.md EXCLUDE)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/rules" DESTINATION scalide/_install/share/scalide ${part})
install(FILES "${SCALIDE_HALIDE_LIBRARY}" DESTINATION "scalide/_install/${CMAKE_INSTALL_LIBDIR}/scalide" ${part})
include("${CMAKE_CURRENT_LIST_DIR}/packages.cmake")
