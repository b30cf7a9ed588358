# libqdq_dnnl_graph: a test program that is linked with it ahead of libdnnl, as a host would be.
if(NOT TARGET qdq_dnnl_graph)
    return()
endif()

file(GLOB SOURCES CONFIGURE_DEPENDS dnnl_graph/*_test.cc)
add_executable(qdq_test_dnnl_graph ${SOURCES})
target_link_libraries(qdq_test_dnnl_graph PRIVATE qdq_flags qdq_dnnl_graph qdq DNNL::dnnl OpenMP::OpenMP_C GTest::gtest
    GTest::gtest_main ${CMAKE_DL_LIBS})
target_compile_definitions(qdq_test_dnnl_graph PRIVATE ${QDQ_TEST_DEFINITIONS})
target_include_directories(qdq_test_dnnl_graph PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_options(qdq_test_dnnl_graph PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Og>)
foreach(SET "dnnl_graph -Concurrency*" "concurrency Concurrency*")
    separate_arguments(SET)
    list(GET SET 0 LABEL)
    list(GET SET 1 FILTER)
    gtest_discover_tests(qdq_test_dnnl_graph TEST_FILTER "${FILTER}" TEST_LIST dnnl_graph_${LABEL}
        DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${LABEL} TIMEOUT 600)
endforeach()

if(NOT QDQ_SANITIZE)
    get_target_property(DNNL_INCLUDE DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
    list(GET DNNL_INCLUDE 0 DNNL_INCLUDE)
    add_test(NAME shape.dnnl_graph_symbols COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/dnnl_graph/symbols.sh"
        "$<TARGET_FILE:qdq_dnnl_graph>" "${DNNL_INCLUDE}" "$<TARGET_FILE:DNNL::dnnl>")
    set_tests_properties(shape.dnnl_graph_symbols PROPERTIES LABELS shape TIMEOUT 60)
endif()

# Programs that know of oneDNN alone, each linked with libdnnl only and with the library ahead of it: they print the same, and
# so does the first one when the library is preloaded.
function(qdq_drop_in_test NAME SOURCE)
    foreach(SIDE "" _on_qdq)
        add_executable(${NAME}${SIDE} "${SOURCE}")
        set_target_properties(${NAME}${SIDE} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
        target_link_libraries(${NAME}${SIDE} PRIVATE qdq_flags $<$<STREQUAL:${SIDE},_on_qdq>:qdq_dnnl_graph>
            DNNL::dnnl m)
    endforeach()
    add_test(NAME dnnl_graph.${NAME} COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/dnnl_graph/drop_in.sh" "$<TARGET_FILE:${NAME}>"
        "$<TARGET_FILE:${NAME}_on_qdq>" "$<TARGET_FILE:qdq_dnnl_graph>")
    set_tests_properties(dnnl_graph.${NAME} PROPERTIES LABELS dnnl_graph TIMEOUT 120)
endfunction()
if(NOT QDQ_SANITIZE) # a preloaded library would come ahead of the sanitizer's runtime
    qdq_drop_in_test(dnnl_graph_wrappers "${CMAKE_CURRENT_SOURCE_DIR}/dnnl_graph/wrappers.cc")
    qdq_drop_in_test(dnnl_graph_matmul "${PROJECT_SOURCE_DIR}/doc/examples/dnnl_graph/dnnl_graph_matmul.c")
    qdq_drop_in_test(dnnl_graph_conv "${PROJECT_SOURCE_DIR}/doc/examples/dnnl_graph/dnnl_graph_conv.cpp")
endif()
