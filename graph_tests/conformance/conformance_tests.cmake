# Conformance beyond the vectors: the onnx package's own node tests, and the shared Q/DQ cases through qdq-bench.

# A folder of node tests, or a Python with the package onnx that writes them; without either there is nothing to run.
set(QDQ_ONNX_NODE_DATA "" CACHE PATH "Node tests of the onnx package (folders with model.onnx and test_data_set_0)")
set(QDQ_PYTHON "" CACHE FILEPATH "Python with the package onnx, for its node tests; default: python3")
if(QDQ_PYTHON STREQUAL "")
    find_program(QDQ_PYTHON3 NAMES python3)
    set(ONNX_PYTHON "${QDQ_PYTHON3}")
else()
    set(ONNX_PYTHON "${QDQ_PYTHON}")
endif()
if(TARGET qdq_test_conformance)
    add_test(NAME conformance.onnx_nodes COMMAND qdq_test_conformance "--gtest_filter=ConformanceOnnxNodes.*")
    set_tests_properties(conformance.onnx_nodes PROPERTIES LABELS conformance FIXTURES_REQUIRED onnx_nodes TIMEOUT 600)
    if(QDQ_ONNX_NODE_DATA)
        set_tests_properties(conformance.onnx_nodes PROPERTIES ENVIRONMENT "QDQ_ONNX_NODE_DATA=${QDQ_ONNX_NODE_DATA}")
    elseif(ONNX_PYTHON)
        add_test(NAME conformance.onnx_nodes_data COMMAND "${ONNX_PYTHON}"
            "${CMAKE_CURRENT_SOURCE_DIR}/conformance/gen_onnx_nodes.py" "${PROJECT_BINARY_DIR}/onnx_nodes")
        set_tests_properties(conformance.onnx_nodes_data PROPERTIES LABELS conformance FIXTURES_SETUP onnx_nodes
            SKIP_RETURN_CODE 77 TIMEOUT 300)
    endif()
endif()

# Static and dynamic Q/DQ in every granularity: small and medium sizes always, large ones by hand (qdq-bench).
file(GLOB SHARED_QDQ CONFIGURE_DEPENDS "${QDQ_SHARED_DIR}/cases/qdq/*.json")
if(SHARED_QDQ AND TARGET qdq-bench_program)
    list(FILTER SHARED_QDQ EXCLUDE REGEX "_L\\.json$")
    list(LENGTH SHARED_QDQ N_CASES)
    list(TRANSFORM SHARED_QDQ PREPEND "--case=")
    list(JOIN SHARED_QDQ "\n" TEXT)
    file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/shared_qdq" CONTENT "${TEXT}\n")
    driver_test(shared_qdq "tests:${N_CASES} passed:${N_CASES}" --mode=C "--batch=${CMAKE_CURRENT_BINARY_DIR}/shared_qdq")
endif()
