# Installs two components. `runtime` is what applications link. `generator` is the tool, the rules and the library for generators in C++.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Scalide")
set(module_folder "${PROJECT_SOURCE_DIR}/generators/tool/cmake")

set(part COMPONENT runtime)
install(TARGETS scalide_runtime EXPORT ScalideRuntimeTargets ${part})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" ${part})
install(EXPORT ScalideRuntimeTargets NAMESPACE Scalide:: DESTINATION "${package_folder}" ${part})
set(SHARE "${CMAKE_INSTALL_DATADIR}/scalide")
set(LIBRARY "${CMAKE_INSTALL_LIBDIR}")
configure_package_config_file("${module_folder}/ScalideConfig.cmake.in" "${PROJECT_BINARY_DIR}/ScalideConfig.cmake"
    INSTALL_DESTINATION "${package_folder}" PATH_VARS SHARE LIBRARY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ScalideConfigVersion.cmake" VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ScalideConfig.cmake" "${PROJECT_BINARY_DIR}/ScalideConfigVersion.cmake" "${module_folder}/AddScalide.cmake"
    DESTINATION "${package_folder}" ${part})
file(RELATIVE_PATH PREFIX_FROM_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${module_folder}/scalide-runtime.pc.in" "${PROJECT_BINARY_DIR}/scalide-runtime.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/scalide-runtime.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" ${part})

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
include("${CMAKE_CURRENT_LIST_DIR}/packages.cmake")
