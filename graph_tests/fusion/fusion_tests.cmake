# Beyond the test program of the folder: generated graphs where int8 products are not exact, and the count of allocations.
if(TARGET qdq_test_fusion)
    add_test(NAME fusion.generated_avx2 COMMAND qdq_test_fusion "--gtest_filter=*GeneratedFusion*:Field*")
    set_tests_properties(fusion.generated_avx2 PROPERTIES LABELS fusion TIMEOUT 600
        ENVIRONMENT "QDQ_MAX_ISA=avx2;QDQ_TEST_GRAPHS=12")
    # F32: no fused kernel on this instruction set
    add_test(NAME fusion.field_without_kernels COMMAND qdq_test_fusion "--gtest_filter=Field*")
    set_tests_properties(fusion.field_without_kernels PROPERTIES LABELS fusion TIMEOUT 600 ENVIRONMENT QDQ_MAX_ISA=ref)

    # --wrap: the calls of our own objects are counted, not those of shared libraries
    add_executable(qdq_test_alloc alloc/alloc_test.cc fusion/net.cc)
    target_link_libraries(qdq_test_alloc PRIVATE qdq_internal qdq_static GTest::gtest GTest::gtest_main)
    target_include_directories(qdq_test_alloc PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_compile_options(qdq_test_alloc PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og>)
    foreach(CALL malloc calloc realloc aligned_alloc posix_memalign free strdup)
        target_link_options(qdq_test_alloc PRIVATE "LINKER:--wrap=${CALL}")
    endforeach()
    gtest_discover_tests(qdq_test_alloc TEST_PREFIX alloc. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
        PROPERTIES LABELS fusion TIMEOUT 600)
endif()
