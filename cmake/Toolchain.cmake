# Compiler settings for all our code: C++20, warnings as errors, a fast linker and a compiler cache if installed.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Only the kernels need -O3. This option would make everything else compile a third slower.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Below -O2, g++ 12 warns of uninitialized variables that are initialized.
set(KVSCOPE_BELOW_O2 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# For libraries and parts whose speed does not matter. Compiling them takes a third less time.
set(KVSCOPE_QUICKLY_COMPILED $<$<CONFIG:Release>:-Og> ${KVSCOPE_BELOW_O2})

# All clones on a machine share the cache folder.
if(NOT "$ENV{KVSCOPE_CACHE}" STREQUAL "")
    set(KVSCOPE_CACHE $ENV{KVSCOPE_CACHE})
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(KVSCOPE_CACHE $ENV{XDG_CACHE_HOME}/kvscope)
else()
    set(KVSCOPE_CACHE $ENV{HOME}/.cache/kvscope)
endif()
cmake_path(ABSOLUTE_PATH KVSCOPE_CACHE NORMALIZE)

# Paths are hashed relative to the checkout, so that clones and presets share compiler results. With CCACHE_DEPEND, ccache
# compares whole files. Otherwise it ignores comments: after a change of a comment, it returns the old precompiled header,
# and g++ reads the changed file again and reports redefinitions.
find_program(KVSCOPE_CCACHE ccache)
if(KVSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        env CCACHE_DIR=${KVSCOPE_CACHE}/ccache CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${KVSCOPE_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
find_program(KVSCOPE_MOLD mold)
if(KVSCOPE_MOLD)
    add_link_options(-fuse-ld=mold)
endif()

# Most compile time goes into headers and templates. Compiling 32 sources as one takes a fifth of the time.
option(KVSCOPE_UNITY "Compile the sources of a part in batches. OFF is faster where single files change." ON)
set(KVSCOPE_BATCH_SIZE 32 CACHE STRING "Largest number of sources in a batch.")

# The largest batches need 1.5 GB, so memory limits the number of parallel compilers.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR at_once "${memory} / 2000")
if(at_once LESS 1)
    set(at_once 1)
endif()
set_property(GLOBAL PROPERTY JOB_POOLS compilers=${at_once})
set(CMAKE_JOB_POOL_COMPILE compilers)

# By default, g++ collects garbage from 128 MB on. Batches need 700 MB, so the default wastes a tenth of the time.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>")

# Options of our own targets only. Other libraries are system headers, without warnings and instrumentation.
# -Wno-restrict: g++ 12 reports false overlaps in std::string::operator+ (GCC bug 105651).
add_library(kvscope_ours INTERFACE)
target_compile_options(kvscope_ours INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual;-Wno-restrict;-Werror>)

# In a batch, a source also sees the file-scope names of other sources, which must not cause warnings. Batches include sources
# by absolute path, and compiler results must not depend on these paths.
if(KVSCOPE_UNITY)
    target_compile_options(kvscope_ours INTERFACE
        $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-shadow;-Wno-subobject-linkage;-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
endif()

# clang compiles the fuzzers without warnings, because g++ has already checked the code. The called code has coverage
# counters that guide the fuzzer.
if(KVSCOPE_FUZZ)
    set(KVSCOPE_FUZZ_OPTIONS -fsanitize=address,fuzzer-no-link -fno-omit-frame-pointer -w)
    target_compile_definitions(kvscope_ours INTERFACE _GLIBCXX_ASSERTIONS)
    target_compile_options(kvscope_ours INTERFACE
        ${KVSCOPE_FUZZ_OPTIONS} -fsanitize=undefined -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=address,undefined)
endif()

# Libraries compiled here are also instrumented. Otherwise the sanitizers would miss the effects of inline functions whose
# only copy is in such a library, such as the release of a shared_ptr.
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
        -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)  # false positives of g++ 12 with sanitizers
endif()
