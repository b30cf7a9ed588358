# qdq_room(NAME FOLDER): the object library qdq_NAME from every .c below FOLDER.
# qdq_program(NAME FOLDER [LIBRARIES...]): one program from every .c in FOLDER.
# qdq_examples(FOLDER [PREFIX]): one program PREFIX<file> from each .c in FOLDER; sees the public header only.
# qdq_example_test(NAME [ARGUMENTS...]): an example that is run as a test; its exit code is the answer.

# What any file of ours may include by path: "base/status.h", "patterns/matcher.h", "kernels/quant/quant.h".
add_library(qdq_internal INTERFACE)
target_include_directories(qdq_internal INTERFACE "${PROJECT_SOURCE_DIR}/backend/include" "${PROJECT_SOURCE_DIR}/backend"
    "${PROJECT_SOURCE_DIR}")
target_compile_definitions(qdq_internal INTERFACE QDQ_WITH_ONEDNN=$<BOOL:${QDQ_WITH_ONEDNN}>)
target_link_libraries(qdq_internal INTERFACE qdq_flags ${QDQ_DEPS})

# Kernel files say in their name what they may assume of the CPU; nothing else in the tree gets an ISA flag.
set(QDQ_ISA_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(QDQ_ISA_avxvnni ${QDQ_ISA_avx2} -mavxvnni)
set(QDQ_ISA_avx512 ${QDQ_ISA_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set(QDQ_ISA_avx512vnni ${QDQ_ISA_avx512} -mavx512vnni)
set(QDQ_ISA_avx512vbmi ${QDQ_ISA_avx512} -mavx512vbmi)
set(QDQ_ISA_avx512bf16 ${QDQ_ISA_avx512vbmi} -mavx512bf16)
set(QDQ_ISA_X86 avx2 avxvnni avx512 avx512vnni avx512vbmi avx512bf16)
set(QDQ_ISA_neon -march=armv8-a)
set(QDQ_ISA_dotprod -march=armv8.2-a+dotprod)
set(QDQ_ISA_ARM neon dotprod)
# Those of the machine that is compiled for.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(QDQ_ISA_HERE ${QDQ_ISA_X86})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(QDQ_ISA_HERE ${QDQ_ISA_ARM})
endif()

set_source_files_properties("${PROJECT_SOURCE_DIR}/kernels/isa/cpu.c" PROPERTIES
    COMPILE_DEFINITIONS QK_CPUINFO_HAS_AVXVNNI=$<BOOL:${QDQ_CPUINFO_HAS_AVXVNNI}>)

set(QDQ_ROOM_OBJECTS "")

# The ISA files of a list get their flags; those for other machines are taken out of it.
function(qdq_isa_sources LIST)
    set(KEPT ${${LIST}})
    foreach(ISA IN LISTS QDQ_ISA_X86 QDQ_ISA_ARM)
        set(OF_ISA ${${LIST}})
        list(FILTER OF_ISA INCLUDE REGEX "_${ISA}\\.c$")
        if(ISA IN_LIST QDQ_ISA_HERE)
            set_source_files_properties(${OF_ISA} PROPERTIES COMPILE_OPTIONS "${QDQ_ISA_${ISA}}")
        elseif(OF_ISA)
            list(REMOVE_ITEM KEPT ${OF_ISA})
        endif()
    endforeach()
    set(${LIST} ${KEPT} PARENT_SCOPE)
endfunction()

function(qdq_room NAME FOLDER)
    file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${FOLDER}/*.c")
    if(NAME STREQUAL "onednn")
        # The real facade and its stub answer the same header: one of the two is compiled.
        set(STUB "${PROJECT_SOURCE_DIR}/${FOLDER}/onednn_stub.c")
        if(QDQ_WITH_ONEDNN)
            list(REMOVE_ITEM SOURCES "${STUB}")
        else()
            list(FILTER SOURCES EXCLUDE REGEX "/onednn_[^/]*$")
            list(APPEND SOURCES "${STUB}")
        endif()
    endif()
    if(NAME STREQUAL "frontends")
        list(FILTER SOURCES EXCLUDE REGEX "/dnnl_graph/") # a library of its own
    endif()
    if(NOT SOURCES)
        message(STATUS "room ${NAME}: empty")
        return()
    endif()
    qdq_isa_sources(SOURCES)
    add_library(qdq_${NAME} OBJECT ${SOURCES})
    target_link_libraries(qdq_${NAME} PRIVATE qdq_internal)
    set_target_properties(qdq_${NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    list(APPEND QDQ_ROOM_OBJECTS $<TARGET_OBJECTS:qdq_${NAME}>)

    # The ONNX reader's message classes come from our own .proto, at build time.
    set(PROTO "${PROJECT_SOURCE_DIR}/${FOLDER}/onnx.proto")
    if(NAME STREQUAL "frontends" AND EXISTS "${PROTO}")
        set(OUT "${PROJECT_BINARY_DIR}/generated")
        file(MAKE_DIRECTORY "${OUT}")
        add_custom_command(OUTPUT "${OUT}/onnx.pb-c.c" "${OUT}/onnx.pb-c.h"
            COMMAND "${QDQ_PROTOC_C}" --c_out=${OUT} -I "${PROJECT_SOURCE_DIR}/${FOLDER}" "${PROTO}"
            DEPENDS "${PROTO}" VERBATIM)
        add_custom_target(qdq_onnx_proto_sources DEPENDS "${OUT}/onnx.pb-c.c" "${OUT}/onnx.pb-c.h")
        add_library(qdq_onnx_proto OBJECT "${OUT}/onnx.pb-c.c")
        target_compile_options(qdq_onnx_proto PRIVATE -w)
        target_link_libraries(qdq_onnx_proto PRIVATE PkgConfig::PROTOBUF_C)
        set_target_properties(qdq_onnx_proto PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
        add_dependencies(qdq_onnx_proto qdq_onnx_proto_sources)
        add_dependencies(qdq_${NAME} qdq_onnx_proto_sources)
        target_include_directories(qdq_${NAME} SYSTEM PRIVATE "${OUT}")
        list(APPEND QDQ_ROOM_OBJECTS $<TARGET_OBJECTS:qdq_onnx_proto>)
    endif()
    set(QDQ_ROOM_OBJECTS "${QDQ_ROOM_OBJECTS}" PARENT_SCOPE)
endfunction()

function(qdq_program NAME FOLDER)
    file(GLOB SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${FOLDER}/*.c")
    if(NOT SOURCES OR NOT TARGET qdq_static)
        return()
    endif()
    # The target qdq is the library: the program has its name only as a file.
    add_executable(${NAME}_program ${SOURCES})
    set_target_properties(${NAME}_program PROPERTIES OUTPUT_NAME ${NAME} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
    target_link_libraries(${NAME}_program PRIVATE ${ARGN} qdq_internal qdq_static)
    install(TARGETS ${NAME}_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

function(qdq_examples FOLDER)
    file(GLOB SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${FOLDER}/*.c")
    if(NOT TARGET qdq)
        return()
    endif()
    foreach(SOURCE IN LISTS SOURCES)
        get_filename_component(NAME "${SOURCE}" NAME_WE)
        set(NAME "${ARGV1}${NAME}")
        add_executable(${NAME} "${SOURCE}")
        set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
        target_link_libraries(${NAME} PRIVATE qdq_flags qdq m)
    endforeach()
endfunction()

function(qdq_example_test NAME)
    if(QDQ_BUILD_TESTS AND TARGET ${NAME})
        add_test(NAME example.${NAME} COMMAND ${NAME} ${ARGN})
        set_tests_properties(example.${NAME} PROPERTIES LABELS example TIMEOUT 300)
    endif()
endfunction()
