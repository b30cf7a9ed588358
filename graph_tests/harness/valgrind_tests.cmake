# The kernels under valgrind, which knows AVX2 and no AVX-512: the tests sweep the levels ref and avx2 there. What it would find in
# the other levels guard pages and the address sanitizer find. QDQ_VALGRIND=quick leaves out what takes longer than the rest
# together; `make valgrind` runs the whole.
set(QDQ_VALGRIND quick CACHE STRING "Kernel tests under valgrind, where it is installed: quick, whole or off")
set_property(CACHE QDQ_VALGRIND PROPERTY STRINGS quick whole off)
find_program(QDQ_VALGRIND_PROGRAM valgrind)
if(QDQ_VALGRIND STREQUAL "off" OR NOT QDQ_VALGRIND_PROGRAM OR NOT TARGET qdq_test_kernels OR QDQ_SANITIZE)
    return()
endif()
function(qdq_valgrind_test NAME PROGRAM FILTER)
    add_test(NAME valgrind.${NAME} COMMAND "${QDQ_VALGRIND_PROGRAM}" -q --error-exitcode=9 --leak-check=full
        --show-leak-kinds=definite --errors-for-leak-kinds=definite
        "--suppressions=${PROJECT_SOURCE_DIR}/graph_tests/harness/valgrind.supp"
        $<TARGET_FILE:${PROGRAM}> "--gtest_filter=${FILTER}" --gtest_brief=1)
    set_tests_properties(valgrind.${NAME} PROPERTIES LABELS valgrind TIMEOUT 1800
        ENVIRONMENT "QDQ_JIT=off;OMP_NUM_THREADS=2;${ARGN}")
endfunction()
set(SLOW "Binary.*:Convolution.*:Gemm.*:Guards.*:Move.*:Norm.*:Pointwise.*:Pool.*:QuantPaths.*")
qdq_valgrind_test(kernels qdq_test_kernels "-${SLOW}")
if(QDQ_VALGRIND STREQUAL "whole")
    string(REPLACE ":" ";" SUITES "${SLOW}")
    foreach(SUITE IN LISTS SUITES)
        string(REGEX REPLACE "\\..*" "" NAME "${SUITE}")
        string(TOLOWER "${NAME}" NAME)
        qdq_valgrind_test(${NAME} qdq_test_kernels "${SUITE}")
    endforeach()
    # What calls them: the native primitives.
    qdq_valgrind_test(native qdq_test_unit "Native*:*/Native*")
    qdq_valgrind_test(native_ref qdq_test_unit "Native*:*/Native*" QDQ_MAX_ISA=ref)
endif()
