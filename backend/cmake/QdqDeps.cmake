# Outside packages. Each becomes a part of qdq_deps, which the rooms compile against and the libraries link.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(CPUINFO REQUIRED IMPORTED_TARGET libcpuinfo)
# Snapshots of cpuinfo differ: kernels/isa/cpu.c has an answer of its own for what this one does not know.
include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::CPUINFO)
check_symbol_exists(cpuinfo_has_x86_avxvnni cpuinfo.h QDQ_CPUINFO_HAS_AVXVNNI)
unset(CMAKE_REQUIRED_LIBRARIES)
find_program(QDQ_PROTOC_C NAMES protoc-c protoc-gen-c REQUIRED)

# oneDNN is optional: without it the native kernels and the reference carry every graph.
find_package(dnnl 3.7 CONFIG QUIET)
if(TARGET DNNL::dnnl)
    option(QDQ_WITH_ONEDNN "Use oneDNN primitives" ON)
else()
    option(QDQ_WITH_ONEDNN "Use oneDNN primitives" OFF)
endif()
if(QDQ_WITH_ONEDNN AND NOT TARGET DNNL::dnnl)
    message(FATAL_ERROR "QDQ_WITH_ONEDNN is ON but oneDNN >= 3.7 was not found (make deps installs it)")
endif()
message(STATUS "oneDNN: ${QDQ_WITH_ONEDNN} ${dnnl_VERSION}")

set(QDQ_DEPS OpenMP::OpenMP_C Threads::Threads PkgConfig::JANSSON PkgConfig::PROTOBUF_C PkgConfig::XXHASH
    PkgConfig::CPUINFO m ${CMAKE_DL_LIBS})
if(QDQ_WITH_ONEDNN)
    list(APPEND QDQ_DEPS DNNL::dnnl)
endif()
