# How everything of ours is compiled: C++20, warnings as errors, a fast linker and a compiler cache where installed.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# -O3 is left to the kernels, where the time goes; everything else would take a third longer to compile.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# For libraries and parts in which no time goes: they compile a quarter faster.
set(KVSCOPE_QUICKLY_COMPILED $<$<CONFIG:Release>:-O1>)

# The cache folder that every clone on this machine shares.
if(DEFINED ENV{KVSCOPE_CACHE})
    set(KVSCOPE_CACHE $ENV{KVSCOPE_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(KVSCOPE_CACHE $ENV{XDG_CACHE_HOME}/kvscope)
else()
    set(KVSCOPE_CACHE $ENV{HOME}/.cache/kvscope)
endif()
cmake_path(ABSOLUTE_PATH KVSCOPE_CACHE NORMALIZE)

# Paths are hashed relative to the checkout, so that a second clone and a second preset find what the first compiled.
find_program(KVSCOPE_CCACHE ccache)
if(KVSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        env CCACHE_DIR=${KVSCOPE_CACHE}/ccache CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros ${KVSCOPE_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
find_program(KVSCOPE_MOLD mold)
if(KVSCOPE_MOLD)
    add_link_options(-fuse-ld=mold)
endif()

# Most of a compilation goes into headers and what they instantiate: 24 sources as one take a fifth of the time.
option(KVSCOPE_UNITY "Compile the sources of a part in batches. OFF is faster where single files change." ON)
set(KVSCOPE_BATCH_SIZE 24 CACHE STRING "Sources in a batch; 0 compiles each part as one.")

# The largest batches take a gigabyte and a half: no more of them at once than the machine's memory has room for.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR at_once "${memory} / 2000")
if(at_once LESS 1)
    set(at_once 1)
endif()
set_property(GLOBAL PROPERTY JOB_POOLS compilers=${at_once})
set(CMAKE_JOB_POOL_COMPILE compilers)

# g++ collects its garbage from 128 MB on otherwise, again and again where a batch takes 700: a tenth of the time.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>")

# Carried by our own targets alone; libraries of others come in as system headers, which do not warn, and are not
# instrumented. -Wno-restrict: g++ 12 sees overlapping copies in its own std::string::operator+ (its bug 105651).
add_library(kvscope_ours INTERFACE)
target_compile_options(kvscope_ours INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual;-Wno-restrict;-Werror>)

# What a neighbour in the batch has at file scope is none of a file's business. Batches name their sources by whole paths,
# which a second clone's compiler results must not depend on.
if(KVSCOPE_UNITY)
    target_compile_options(kvscope_ours INTERFACE
        $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-shadow;-Wno-subobject-linkage;-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
endif()

# Fuzzers are compiled by clang, whose warnings are others: g++ has given its own already. What they call is instrumented
# with counters that lead them.
if(KVSCOPE_FUZZ)
    set(KVSCOPE_FUZZ_OPTIONS -fsanitize=address,fuzzer-no-link -fno-omit-frame-pointer -w)
    target_compile_definitions(kvscope_ours INTERFACE _GLIBCXX_ASSERTIONS)
    target_compile_options(kvscope_ours INTERFACE
        ${KVSCOPE_FUZZ_OPTIONS} -fsanitize=undefined -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=address,undefined)
endif()

# Libraries that are compiled here are instrumented, too: where one has the only copy of an inline function, such as the
# end of a shared_ptr, the sanitizers would otherwise not see what it does.
if(KVSCOPE_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
    target_compile_options(kvscope_ours INTERFACE -fsanitize=undefined -fno-sanitize-recover=undefined)
elseif(KVSCOPE_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
    add_link_options(-fsanitize=thread)
elseif(KVSCOPE_SANITIZE)
    message(FATAL_ERROR "KVSCOPE_SANITIZE is '${KVSCOPE_SANITIZE}'; it is address, thread or OFF")
endif()
if(KVSCOPE_SANITIZE)
    target_compile_definitions(kvscope_ours INTERFACE _GLIBCXX_ASSERTIONS)
    target_compile_options(kvscope_ours INTERFACE
        -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)  # what is inlined here misleads g++ 12
endif()
