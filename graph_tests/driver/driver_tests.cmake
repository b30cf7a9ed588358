# Tests of qdq-bench: the program itself on our own cases, on command lines that must fail, and on the shared cases.

if(NOT TARGET qdq-bench_program)
    return()
endif()
set(CASES "${CMAKE_CURRENT_SOURCE_DIR}/cases")

# driver_test(NAME REGEX ARGUMENTS...): passes when the program succeeds and its output matches.
# driver_failure(NAME REGEX ARGUMENTS...): the program must fail, and say why.
function(driver_run NAME CODE REGEX)
    add_test(NAME driver.${NAME}
        COMMAND ${CMAKE_COMMAND} -D CODE=${CODE} -D "REGEX=${REGEX}" -P "${CMAKE_CURRENT_SOURCE_DIR}/driver/driver_run.cmake"
            -- $<TARGET_FILE:qdq-bench_program> ${ARGN})
    set_tests_properties(driver.${NAME} PROPERTIES LABELS driver TIMEOUT 600)
endfunction()
function(driver_test NAME REGEX)
    driver_run(${NAME} 0 "${REGEX}" ${ARGN})
endfunction()
function(driver_failure NAME REGEX)
    driver_run(${NAME} 1 "${REGEX}" ${ARGN})
endfunction()

foreach(BATCH op pattern model rewrite)
    driver_test(cases_${BATCH} "mistrusted:0 unimplemented:0 invalid_arguments:0 failed:0" "--batch=${CASES}/batch_${BATCH}")
endforeach()
driver_test(performance "Output template: perf,%engine%,%prb%,%-time%,%0time%.perf,cpu,.*op_relu_f32.json,[0-9.e-]+,[0-9.e-]+.*total perf: min"
    --mode=P --fix-times-per-prb=3 "--case=${CASES}/op_relu_f32.json")
driver_test(both_modes "perf,cpu.*0:PASSED __REPRO: --mode=CP" --mode=CP --fix-times-per-prb=1 "--case=${CASES}/op_relu_f32.json")
driver_test(template "T relu cpu 1 100%" --mode=P --fix-times-per-prb=1 "--perf-template=T relu %engine% %parts% 100%"
    "--case=${CASES}/op_relu_f32.json")
driver_test(init "0:INITIALIZED __REPRO" --mode=I "--case=${CASES}/pattern_matmul_u8s8u8.json")
driver_test(list "0:LISTED __REPRO.*listed:1" --mode=L "--case=${CASES}/op_relu_f32.json")
driver_test(table "part .*pattern.*ReLU" -v1 "--case=${CASES}/op_relu_f32.json")
driver_test(lists "tests:6 passed:6" --dt=f32,bf16,f16 --mb=1,2 --attr-fpmath=strict:false "--case=${CASES}/op_relu_f32.json")
driver_test(threads "tests:1 passed:1" --threads=1 "--case=${CASES}/pattern_matmul_u8s8u8.json")
driver_test(case_dir "tests:1 passed:1" "--case-dir=${CASES}" --case=op_relu_f32.json)
driver_test(any_number_of_partitions "tests:1 passed:1" --expected-n-partitions=0 "--case=${CASES}/model_three_convs_u8.json")

driver_failure(no_tests "tests:0 .*no test ran")
driver_failure(missing_case "0:INVALID_ARGUMENTS .nowhere.json: cannot open.*failed:1" --case=nowhere.json)
driver_failure(missing_batch "cannot open the batch file" --batch=nowhere "--case=${CASES}/op_relu_f32.json")
driver_failure(unknown_option "unknown option `--nonsense`" --nonsense "--case=${CASES}/op_relu_f32.json")
driver_failure(refused_mode "--mode is one of" --mode=R "--case=${CASES}/op_relu_f32.json")
driver_failure(wrong_count "0:FAILED .1 partitions, expected 2." --expected-n-partitions=2 "--case=${CASES}/op_relu_f32.json")
driver_failure(unknown_kind "0:UNIMPLEMENTED .*AbsBackward.*unimplemented:1" --op-kind=100:AbsBackward "--case=${CASES}/op_relu_f32.json")
driver_failure(misfit "0:INVALID_ARGUMENTS .*op_matmul_f32.json:5:5: .*MatMul" --in-shapes=0:3x4 "--case=${CASES}/op_matmul_f32.json")
driver_failure(endless_batch "nested too deep" "--batch=${CASES}/../driver/batch_endless" "--case=${CASES}/op_relu_f32.json")

# Shared cases, as far as they are forward ops: kinds without a schema are left out by name.
if(IS_DIRECTORY "${QDQ_SHARED_DIR}/onednn_cases")
    function(driver_shared NAME BATCH EXCLUDE)
        file(STRINGS "${QDQ_SHARED_DIR}/onednn_cases/${BATCH}" LINES)
        list(FILTER LINES EXCLUDE REGEX "${EXCLUDE}")
        list(JOIN LINES "\n" TEXT)
        file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/shared_${NAME}" CONTENT "${TEXT}\n")
        driver_test(shared_${NAME} "failed:0" "--case-dir=${QDQ_SHARED_DIR}/onednn_cases"
            "--batch=${CMAKE_CURRENT_BINARY_DIR}/shared_${NAME}")
    endfunction()
    driver_shared(op_f32 op/harness_f32_ci "_bwd|bnorm_fwd_d")
    # matmul, conv and pool without TypeCast; shapes that take minutes under a sanitizer are left to runs by hand
    driver_shared(int8_matmul pattern/harness_int8_all "bf16|_f32_|reorder|concat|bnorm|lnorm|softmax|conv|pool|^#")
    driver_shared(int8_conv_pool pattern/harness_int8_all
        "bf16|reorder|concat|bnorm|lnorm|softmax|matmul|int8_conv_bias_fusion|depthwise|50x64x56x56|8209:zps|1x64x600x600|^#")
endif()
