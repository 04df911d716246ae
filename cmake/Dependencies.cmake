# What kvscope is built from: the machine's own packages through find_package, and what cmake/dependencies.txt pins
# where the machine has none. Every library comes out as an imported target, so its headers count as system headers.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
# The flag alone: by its path, libgomp would stand against the copy beside libtorch, which has to be the only one loaded.
set_target_properties(OpenMP::OpenMP_CXX PROPERTIES INTERFACE_LINK_LIBRARIES "" INTERFACE_LINK_OPTIONS -fopenmp)
find_package(Threads REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
pkg_check_modules(cairo REQUIRED IMPORTED_TARGET cairo cairo-pdf cairo-svg cairo-ft pangocairo fontconfig)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

# Sets `out` to the place of a pinned dependency, fetching or building it on first use.
function(kvscope_fetch out thing)
    execute_process(
        COMMAND ${CMAKE_COMMAND} -E env KVSCOPE_CACHE=${KVSCOPE_CACHE}
                ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/fetch.py ${thing} --compiler ${CMAKE_CXX_COMPILER}
        OUTPUT_VARIABLE place OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "cmake/fetch.py ${thing} failed; its message stands above")
    endif()
    file(APPEND ${CMAKE_BINARY_DIR}/fetched.txt "${place}\n")  # scripts/build configures again where one has gone
    set(${out} ${place} PARENT_SCOPE)
endfunction()
file(REMOVE ${CMAKE_BINARY_DIR}/fetched.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/cmake/dependencies.txt ${CMAKE_SOURCE_DIR}/cmake/fetch.py)

# libtorch's CPU half. Its own CMake package asks for a whole CUDA toolkit, so the targets are written here.
if(KVSCOPE_ENGINE)
    find_package(Torch 2.11 QUIET CONFIG)
    add_library(kvscope_torch INTERFACE)
    if(Torch_FOUND)
        target_link_libraries(kvscope_torch INTERFACE torch_cpu c10)
    else()
        kvscope_fetch(KVSCOPE_TORCH libtorch)
        foreach(name c10 torch_cpu)
            add_library(${name} SHARED IMPORTED)
            set_target_properties(${name} PROPERTIES
                IMPORTED_LOCATION ${KVSCOPE_TORCH}/torch/lib/lib${name}.so
                IMPORTED_SONAME lib${name}.so
                INTERFACE_INCLUDE_DIRECTORIES "${KVSCOPE_TORCH}/torch/include;${KVSCOPE_TORCH}/torch/include/torch/csrc/api/include")
        endforeach()
        target_link_libraries(torch_cpu INTERFACE c10)
        # libtorch_cpu finds the CUDA runtime by its own run path; the linker has to be told.
        target_link_options(torch_cpu INTERFACE
            -Wl,-rpath-link,${KVSCOPE_TORCH}/nvidia/cu13/lib:${KVSCOPE_TORCH}/torch/lib)
        target_link_libraries(kvscope_torch INTERFACE torch_cpu)
    endif()
    add_library(kvscope::torch ALIAS kvscope_torch)
endif()

# llama.cpp: GGUF reading, dequantisation, vocabularies (targets llama, ggml::ggml-base).
foreach(package llama ggml)
    if("${${package}_DIR}" MATCHES "^${KVSCOPE_CACHE}/")
        unset(${package}_DIR CACHE)  # an earlier pin's
    endif()
endforeach()
find_package(llama QUIET CONFIG)
if(NOT llama_FOUND)
    kvscope_fetch(KVSCOPE_LLAMA llama)
    find_package(llama REQUIRED CONFIG PATHS ${KVSCOPE_LLAMA} NO_DEFAULT_PATH)
endif()

# llama.cpp's Jinja interpreter: source alone, no library of it is installed.
kvscope_fetch(KVSCOPE_LLAMA_SOURCE llama-source)
file(GLOB jinja_sources ${KVSCOPE_LLAMA_SOURCE}/common/jinja/*.cpp)
add_library(kvscope_jinja STATIC ${jinja_sources}
    ${KVSCOPE_LLAMA_SOURCE}/common/json.cpp ${KVSCOPE_LLAMA_SOURCE}/common/unicode.cpp)
target_include_directories(kvscope_jinja SYSTEM PUBLIC ${KVSCOPE_LLAMA_SOURCE}/common)
target_include_directories(kvscope_jinja SYSTEM PRIVATE ${KVSCOPE_LLAMA_SOURCE}/vendor)
target_link_libraries(kvscope_jinja PRIVATE ggml::ggml-base)
# It asserts what a template in error does not keep; without assertions it throws there.
target_compile_definitions(kvscope_jinja PRIVATE NDEBUG)
add_library(kvscope::jinja ALIAS kvscope_jinja)

kvscope_fetch(KVSCOPE_DEFAULT_MODEL model)

if(KVSCOPE_GUI)
    pkg_check_modules(fribidi REQUIRED IMPORTED_TARGET fribidi)
    include(Imgui)
endif()
