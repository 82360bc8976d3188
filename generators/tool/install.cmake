# Installs the package: runtime, generator library, tool and rules. Applications need only the runtime.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Scalide")

install(TARGETS scalide_runtime EXPORT ScalideRuntimeTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT ScalideRuntimeTargets NAMESPACE Scalide:: DESTINATION "${package_folder}")

if(SCALIDE_BUILD_GENERATORS)
    set(layers scalide_expr scalide_ir scalide_kinds scalide_rulebook scalide_transforms scalide_interpret scalide_frontend scalide_lower scalide_schedules
        scalide_emit scalide_tool)
    install(TARGETS ${layers} scalide_generator scalide EXPORT ScalideGeneratorTargets)
    install(EXPORT ScalideGeneratorTargets NAMESPACE Scalide:: DESTINATION "${package_folder}")
    set_property(TARGET scalide APPEND PROPERTY INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/scalide")
    set(headers "${PROJECT_BINARY_DIR}/installed_headers")
    set(write_headers "${PROJECT_SOURCE_DIR}/generators/tool/installed_headers.cmake")
    install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" -D \"FROM=${PROJECT_SOURCE_DIR}/generators\" -D \"TO=${headers}\" -P \"${write_headers}\"
        COMMAND_ERROR_IS_FATAL ANY)")
    install(DIRECTORY "${headers}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/scalide")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/rules" DESTINATION "${CMAKE_INSTALL_DATADIR}/scalide")
    install(FILES "${SCALIDE_HALIDE_LIBRARY}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/scalide")
    install(FILES "${PROJECT_SOURCE_DIR}/generators/tool/cmake/AddScalide.cmake" DESTINATION "${package_folder}")
else()
    install(FILES "${PROJECT_SOURCE_DIR}/generators/tool/cmake/AddScalide.cmake" DESTINATION "${package_folder}")
endif()

set(SHARE "${CMAKE_INSTALL_DATADIR}/scalide")
set(LIBRARY "${CMAKE_INSTALL_LIBDIR}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/generators/tool/cmake/ScalideConfig.cmake.in" "${PROJECT_BINARY_DIR}/ScalideConfig.cmake"
    INSTALL_DESTINATION "${package_folder}" PATH_VARS SHARE LIBRARY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ScalideConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ScalideConfig.cmake" "${PROJECT_BINARY_DIR}/ScalideConfigVersion.cmake" DESTINATION "${package_folder}")
