# Installation: libraries, header, the CMake package (qdq::qdq, qdq::qdq_static), qdq.pc. The programs install themselves.

if(NOT TARGET qdq)
    return()
endif()
include(CMakePackageConfigHelpers)
set(QDQ_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/qdq)

# Two export sets: who links the shared library need not have what the static one pulls in.
install(TARGETS qdq EXPORT qdqTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET qdq_dnnl_graph)
    install(TARGETS qdq_dnnl_graph EXPORT qdqTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS qdq_static EXPORT qdqStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT qdqTargets NAMESPACE qdq:: DESTINATION ${QDQ_CMAKE_DIR})
install(EXPORT qdqStaticTargets NAMESPACE qdq:: DESTINATION ${QDQ_CMAKE_DIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/backend/include/qdq" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h")

configure_package_config_file("${PROJECT_SOURCE_DIR}/backend/cmake/qdqConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/qdqConfig.cmake" INSTALL_DESTINATION ${QDQ_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/qdqConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/qdqConfig.cmake" "${PROJECT_BINARY_DIR}/qdqConfigVersion.cmake"
    DESTINATION ${QDQ_CMAKE_DIR})

# qdq.pc finds its prefix from where it lies, so an installed tree can be moved.
set(QDQ_PC_DIR "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH QDQ_PC_PREFIX "${QDQ_PC_DIR}" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" QDQ_PC_PREFIX "${QDQ_PC_PREFIX}")
set(QDQ_PC_ONEDNN "")
if(QDQ_WITH_ONEDNN)
    set(QDQ_PC_ONEDNN "-ldnnl ")
endif()
configure_file("${PROJECT_SOURCE_DIR}/backend/cmake/qdq.pc.in" "${PROJECT_BINARY_DIR}/qdq.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/qdq.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
