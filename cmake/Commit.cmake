# Sets KVSCOPE_COMMIT and KVSCOPE_COMMIT_DATE to the commit that is built and its date. Changes of HEAD reconfigure the build.
set(KVSCOPE_COMMIT unknown)
find_package(Git QUIET)
if(Git_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} log -1 "--format=%h;%cs"
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} rev-parse --git-path logs/HEAD
        OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
        list(POP_FRONT commit KVSCOPE_COMMIT KVSCOPE_COMMIT_DATE)
        cmake_path(ABSOLUTE_PATH log BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
endif()
