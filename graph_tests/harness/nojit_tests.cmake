# Without code generation: whole test programs with QDQ_JIT=off, under a filter that lets no executable memory be mapped.
if(NOT TARGET qdq_test_fusion OR QDQ_SANITIZE)
    return()
endif()
function(qdq_nojit_test NAME PROGRAM FILTER GRAPHS)
    add_test(NAME nojit.${NAME} COMMAND ${PROGRAM} "--gtest_filter=${FILTER}" --gtest_brief=1)
    set_tests_properties(nojit.${NAME} PROPERTIES LABELS nojit TIMEOUT 600 SKIP_RETURN_CODE 77
        ENVIRONMENT "QDQ_JIT=off;QDQ_TEST_NO_EXEC=1;QDQ_TEST_GRAPHS=${GRAPHS};${ARGN}")
endfunction()
qdq_nojit_test(fusion qdq_test_fusion "*" 8)
qdq_nojit_test(fusion_avx2 qdq_test_fusion "*GeneratedFusion*:Field*" 6 QDQ_MAX_ISA=avx2)
qdq_nojit_test(fusion_ref qdq_test_fusion "*GeneratedFusion*:FieldKernels*" 3 QDQ_MAX_ISA=ref)
qdq_nojit_test(conformance qdq_test_conformance "*" 1)
qdq_nojit_test(unit qdq_test_unit "Onednn*:*/Onednn*:Native*:*/Native*:Api*" 1)

# The other spelling of a cap: oneDNN where it is exact, our own kernels elsewhere.
add_test(NAME conformance.avx2 COMMAND qdq_test_conformance --gtest_brief=1)
set_tests_properties(conformance.avx2 PROPERTIES LABELS conformance TIMEOUT 600 ENVIRONMENT "QDQ_MAX_ISA=avx2")

# The filter sees what oneDNN does when it may.
if(QDQ_WITH_ONEDNN)
    add_test(NAME nojit.the_guard_catches COMMAND qdq_test_fusion "--gtest_filter=FieldFusion.*")
    set_tests_properties(nojit.the_guard_catches PROPERTIES LABELS nojit TIMEOUT 600
        PASS_REGULAR_EXPRESSION "executable memory was asked for|seccomp is not allowed"
        ENVIRONMENT "QDQ_JIT=on;QDQ_TEST_NO_EXEC=1")
endif()
