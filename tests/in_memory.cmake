# Sets in_memory to an environment variable for tests whose temporary files fit into memory, or to an empty list. kvscope waits
# until the disk has each part of a trace. Files in memory need no wait.
set(in_memory "")
execute_process(COMMAND df --output=avail --block-size=1G /dev/shm OUTPUT_VARIABLE free_gigabytes ERROR_QUIET)
execute_process(COMMAND findmnt --noheadings --output OPTIONS --target /dev/shm OUTPUT_VARIABLE options ERROR_QUIET)
if(free_gigabytes MATCHES "([0-9]+)[ \n]*$" AND CMAKE_MATCH_1 GREATER_EQUAL 4 AND NOT options MATCHES "noexec")
    set(in_memory TMPDIR=/dev/shm)
endif()
