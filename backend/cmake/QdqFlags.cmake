# How our code is compiled. Everything hangs on the interface target qdq_flags, so that a host that builds libqdq as a
# subproject keeps its own flags; only the sanitizers are global, because a half-sanitized program is worth nothing.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_C_COMPILER_LAUNCHER)
    find_program(QDQ_CCACHE ccache)
    if(QDQ_CCACHE)
        set(CMAKE_C_COMPILER_LAUNCHER "${QDQ_CCACHE}")
        set(CMAKE_CXX_COMPILER_LAUNCHER "${QDQ_CCACHE}")
    endif()
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(qdq_flags INTERFACE)
target_compile_features(qdq_flags INTERFACE c_std_17)
target_compile_options(qdq_flags INTERFACE
    # The numeric contract says where a result is rounded: the compiler may not fuse a*b+c behind our back.
    -ffp-contract=off -fno-math-errno
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes>
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers>
    $<$<BOOL:${QDQ_WERROR}>:-Werror>)
# Strict C17 hides the POSIX calls (clock_gettime, mmap, strdup) that the host parts need.
target_compile_definitions(qdq_flags INTERFACE _DEFAULT_SOURCE)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)

if(QDQ_SANITIZE)
    add_compile_options(-fsanitize=${QDQ_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${QDQ_SANITIZE})
    # gcc 12 aligns the frames that it puts aside for this check to less than the AVX-512 vectors in them, and they fault.
    if(QDQ_SANITIZE MATCHES "address")
        add_compile_options($<$<C_COMPILER_ID:GNU>:--param=asan-use-after-return=0>)
        # A kernel's thousands of accesses are checked by calls: woven in place they take gcc three times as long.
        add_compile_options($<$<C_COMPILER_ID:GNU>:--param=asan-instrumentation-with-call-threshold=100>)
    endif()
    # The checks that gcc weaves in hide from it that a value fits; the plain builds have looked at every conversion.
    target_compile_options(qdq_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wno-conversion>)
endif()
