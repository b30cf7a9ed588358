# The two libraries. Both are made of the same objects: what the tests of the static one see is what the shared one runs.

if(NOT QDQ_ROOM_OBJECTS)
    message(STATUS "no room has sources yet: no library")
    return()
endif()

add_library(qdq SHARED ${QDQ_ROOM_OBJECTS})
add_library(qdq_static STATIC ${QDQ_ROOM_OBJECTS})
set_target_properties(qdq PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
set_target_properties(qdq_static PROPERTIES OUTPUT_NAME qdq LINKER_LANGUAGE C
    ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
foreach(LIBRARY qdq qdq_static)
    target_include_directories(${LIBRARY} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/backend/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${LIBRARY} PRIVATE ${QDQ_DEPS})
    add_library(qdq::${LIBRARY} ALIAS ${LIBRARY})
endforeach()

target_link_options(qdq PRIVATE -Wl,--as-needed)
if(NOT QDQ_SANITIZE) # clang leaves the sanitizer runtime's symbols open in shared libraries
    target_link_options(qdq PRIVATE -Wl,--no-undefined)
endif()
