# libqdq_dnnl_graph.so: oneDNN Graph's C functions on libqdq. It is a host of the library like any other: the public header,
# and what oneDNN installs.

option(QDQ_DNNL_GRAPH "Build libqdq_dnnl_graph, oneDNN Graph's interface on libqdq" ${QDQ_WITH_ONEDNN})
if(NOT QDQ_DNNL_GRAPH OR NOT TARGET qdq)
    return()
endif()
if(NOT TARGET DNNL::dnnl)
    message(FATAL_ERROR "QDQ_DNNL_GRAPH is ON but oneDNN >= 3.7 was not found (make deps installs it)")
endif()

set(FOLDER "${PROJECT_SOURCE_DIR}/backend/frontends/dnnl_graph")
file(GLOB SOURCES CONFIGURE_DEPENDS "${FOLDER}/*.c")
add_library(qdq_dnnl_graph SHARED ${SOURCES})
set_target_properties(qdq_dnnl_graph PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}" LINK_DEPENDS "${FOLDER}/exports.map"
    INSTALL_RPATH "$ORIGIN") # libqdq lies beside it
target_compile_definitions(qdq_dnnl_graph PRIVATE DNNL_DLL DNNL_DLL_EXPORTS)
target_link_libraries(qdq_dnnl_graph PRIVATE qdq_flags qdq DNNL::dnnl OpenMP::OpenMP_C Threads::Threads PkgConfig::XXHASH)
if(NOT QDQ_SANITIZE)
    target_link_options(qdq_dnnl_graph PRIVATE -Wl,--no-undefined)
endif()
target_link_options(qdq_dnnl_graph PRIVATE -Wl,--as-needed "-Wl,--version-script=${FOLDER}/exports.map")
add_library(qdq::qdq_dnnl_graph ALIAS qdq_dnnl_graph)
