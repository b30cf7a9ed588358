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
target_compile_options(qdq_test_dnnl_graph PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og>)
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
