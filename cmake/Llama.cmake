# Compiles the parts of llama.cpp that kvscope uses: GGUF files and dequantization (kvscope::ggml), the vocabularies of
# GGUF files (kvscope::llama_vocabulary), and the Jinja interpreter (kvscope::jinja). llama.cpp's own build also compiles
# all model architectures and the CPU backend, which takes over two minutes.

# kvscope_llama_part(NAME ALIAS alias SOURCES files… [LINKS targets…]): a static library compiled without warnings.
function(kvscope_llama_part name)
    cmake_parse_arguments(part "" "ALIAS" "SOURCES;LINKS" ${ARGN})
    list(TRANSFORM part_SOURCES PREPEND ${KVSCOPE_LLAMA_SOURCE}/)
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${part_SOURCES})
    add_library(kvscope::${part_ALIAS} ALIAS ${name})
    target_link_libraries(${name} PUBLIC ${part_LINKS})
    # In two sources, damaged input fails an assertion. Without assertions, these sources throw an exception.
    target_compile_definitions(${name} PRIVATE NDEBUG)
    target_compile_options(${name} PRIVATE -w ${KVSCOPE_QUICKLY_COMPILED})
    set_target_properties(${name} PROPERTIES UNITY_BUILD ${KVSCOPE_UNITY})
endfunction()

kvscope_llama_part(kvscope_ggml ALIAS ggml LINKS Threads::Threads ${CMAKE_DL_LIBS} SOURCES
    ggml/src/ggml.c ggml/src/ggml-alloc.c ggml/src/ggml-backend.cpp ggml/src/ggml-backend-dl.cpp
    ggml/src/ggml-backend-meta.cpp ggml/src/ggml-backend-reg.cpp ggml/src/ggml-quants.c ggml/src/ggml-threading.cpp
    ggml/src/gguf.cpp)
# ggml-quants.c needs -O2, because it dequantizes whole models. The tokenizers below need it, because they read whole books.
set_source_files_properties(${KVSCOPE_LLAMA_SOURCE}/ggml/src/ggml-quants.c PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>)
target_include_directories(kvscope_ggml SYSTEM
    PUBLIC ${KVSCOPE_LLAMA_SOURCE}/ggml/include PRIVATE ${KVSCOPE_LLAMA_SOURCE}/ggml/src)
target_compile_definitions(kvscope_ggml PRIVATE GGML_SCHED_MAX_COPIES=4 _GNU_SOURCE _XOPEN_SOURCE=600)
set(GGML_VERSION pinned)
set(GGML_BUILD_COMMIT pinned)
configure_file(${KVSCOPE_LLAMA_SOURCE}/ggml/src/ggml-version.h.in ${CMAKE_BINARY_DIR}/include/ggml/ggml-version.h @ONLY)
target_include_directories(kvscope_ggml SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/include/ggml)

kvscope_llama_part(kvscope_llama_vocabulary ALIAS llama_vocabulary LINKS kvscope_ggml SOURCES
    src/llama-arch.cpp src/llama-hparams.cpp src/llama-impl.cpp src/llama-mmap.cpp src/llama-model-loader.cpp
    src/llama-vocab.cpp src/unicode-data.cpp src/unicode.cpp)
target_sources(kvscope_llama_vocabulary PRIVATE ${CMAKE_SOURCE_DIR}/cmake/llama_split_stubs.cpp)
set_source_files_properties(${KVSCOPE_LLAMA_SOURCE}/src/llama-vocab.cpp ${KVSCOPE_LLAMA_SOURCE}/src/unicode.cpp
    PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>)
target_include_directories(kvscope_llama_vocabulary SYSTEM
    PUBLIC ${KVSCOPE_LLAMA_SOURCE}/include ${KVSCOPE_LLAMA_SOURCE}/src)

file(GLOB jinja_sources RELATIVE ${KVSCOPE_LLAMA_SOURCE} ${KVSCOPE_LLAMA_SOURCE}/common/jinja/*.cpp)
# These two sources specialize templates that other sources have already instantiated, so they are not batched.
set_source_files_properties(${KVSCOPE_LLAMA_SOURCE}/common/json.cpp ${KVSCOPE_LLAMA_SOURCE}/common/jinja/value.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
kvscope_llama_part(kvscope_jinja ALIAS jinja LINKS kvscope_ggml SOURCES
    ${jinja_sources} common/json.cpp common/unicode.cpp)
target_include_directories(kvscope_jinja SYSTEM
    PUBLIC ${KVSCOPE_LLAMA_SOURCE}/common PRIVATE ${KVSCOPE_LLAMA_SOURCE}/vendor)
if(KVSCOPE_FUZZ)
    target_compile_options(kvscope_jinja PRIVATE ${KVSCOPE_FUZZ_OPTIONS})
endif()
