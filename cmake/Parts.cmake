# kvscope_part(NAME FOLDER folder [SOURCES globs…] [ALONE globs…] [PRECOMPILED target] [HEADERS headers…]
#              [PUBLIC targets…] [PRIVATE targets…])
#
# Adds one static library for a part of the project, with all sources that the globs match. Its include folder contains a
# link to this part only (`#include "kernels/select_topk.h"`), so that includes against the direction of dependencies do
# not compile. A part without sources provides only its headers. Sources are compiled in batches (KVSCOPE_UNITY), except
# ALONE: files that share names, or that are often edited one at a time. PRECOMPILED names a target of
# kvscope_precompiled(), whose headers and options the part reuses. A part with HEADERS precompiles these, too.
function(kvscope_part name)
    cmake_parse_arguments(part "" "FOLDER;PRECOMPILED" "SOURCES;ALONE;HEADERS;PUBLIC;PRIVATE" ${ARGN})
    list(TRANSFORM part_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/${part_FOLDER}/)
    file(GLOB sources CONFIGURE_DEPENDS ${part_SOURCES})
    list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
    set(include ${CMAKE_BINARY_DIR}/include/${name})
    cmake_path(GET part_FOLDER PARENT_PATH above)
    file(MAKE_DIRECTORY ${include}/${above})
    if(NOT IS_SYMLINK ${include}/${part_FOLDER})
        file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${part_FOLDER} ${include}/${part_FOLDER} SYMBOLIC)
    endif()
    if(sources)
        add_library(kvscope_${name} STATIC ${sources})
        target_include_directories(kvscope_${name} PUBLIC ${include})
        target_link_libraries(kvscope_${name} PUBLIC ${part_PUBLIC} PRIVATE ${part_PRIVATE} kvscope_ours)
        if(part_ALONE)
            list(TRANSFORM part_ALONE PREPEND ${CMAKE_SOURCE_DIR}/${part_FOLDER}/)
            file(GLOB alone CONFIGURE_DEPENDS ${part_ALONE})
            list(REMOVE_ITEM sources ${alone})
        endif()
        if(part_PRECOMPILED)
            target_compile_options(kvscope_${name} PRIVATE $<TARGET_PROPERTY:${part_PRECOMPILED},INTERFACE_COMPILE_OPTIONS>)
            if(KVSCOPE_UNITY AND part_HEADERS)
                get_target_property(common ${part_PRECOMPILED} KVSCOPE_HEADERS)
                kvscope_parse_once(kvscope_${name} ${common} ${part_HEADERS})
            elseif(KVSCOPE_UNITY)
                kvscope_parse_once(kvscope_${name} REUSE_FROM ${part_PRECOMPILED})
            endif()
        endif()
        set_property(TARGET kvscope_${name} PROPERTY KVSCOPE_BATCHED "${sources}")
        cmake_language(EVAL CODE "cmake_language(DEFER CALL kvscope_compile_in_batches kvscope_${name})")
    else()
        add_library(kvscope_${name} INTERFACE)
        target_include_directories(kvscope_${name} INTERFACE ${include})
        target_link_libraries(kvscope_${name} INTERFACE ${part_PUBLIC})
    endif()
endfunction()

# kvscope_precompiled(NAME HEADERS headers… LINKS targets… [OPTIONS options…])
#
# Precompiles library headers for all parts that reuse them (PRECOMPILED of kvscope_part). These parts also get the
# options, because g++ 12 crashes if the optimization level differs. -pthread, which Cairo requires, changes macros of
# the headers, so all have it.
function(kvscope_precompiled name)
    cmake_parse_arguments(precompiled "" "" "HEADERS;LINKS;OPTIONS" ${ARGN})
    set(source ${CMAKE_BINARY_DIR}/batches/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(${name} OBJECT ${source})
    target_link_libraries(${name} PRIVATE ${precompiled_LINKS} kvscope_ours)
    target_compile_options(${name} PUBLIC -pthread ${precompiled_OPTIONS})
    kvscope_parse_once(${name} ${precompiled_HEADERS})
    set_property(TARGET ${name} PROPERTY KVSCOPE_HEADERS ${precompiled_HEADERS})
endfunction()

# kvscope_parse_once(TARGET headers…|REUSE_FROM target): precompiles headers, or reuses another target's precompiled
# headers, which requires the same options. -fpch-preprocess makes ccache work with precompiled headers.
function(kvscope_parse_once target)
    if(ARGV1 STREQUAL "REUSE_FROM")
        target_precompile_headers(${target} ${ARGN})
    else()
        target_precompile_headers(${target} PRIVATE ${ARGN})
    endif()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()

# kvscope_compile_in_batches(TARGET)
#
# Compiles the sources in the target's property KVSCOPE_BATCHED in batches, as files that include them. The includes are
# relative ("engine/decode/decode.cpp"). CMake's own unity build includes absolute paths, so a second clone would find
# nothing in the compiler cache.
function(kvscope_compile_in_batches target)
    get_target_property(sources ${target} KVSCOPE_BATCHED)
    if(NOT KVSCOPE_UNITY OR NOT sources)
        return()
    endif()
    list(LENGTH sources count)
    math(EXPR batches "(${count} + ${KVSCOPE_BATCH_SIZE} - 1) / ${KVSCOPE_BATCH_SIZE}")
    math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
    set(first 0)
    while(first LESS count)
        list(SUBLIST sources ${first} ${size} batch)
        set(text "")
        foreach(source ${batch})
            if(source MATCHES "/include/[^/]+/(generated/[^/]+)$")
                set(source ${CMAKE_MATCH_1})
            else()
                cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
            endif()
            string(APPEND text "#include \"${source}\"  // NOLINT\n")
        endforeach()
        math(EXPR number "${first} / ${size}")
        set(file ${CMAKE_BINARY_DIR}/batches/${target}_${number}.cpp)
        file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
        target_sources(${target} PRIVATE ${file})
        math(EXPR first "${first} + ${size}")
    endwhile()
    set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

# kvscope_generated_source(TARGET file): adds a source from generated/ in the part's include folder, also to the batches.
function(kvscope_generated_source target file)
    target_sources(${target} PRIVATE ${file})
    set_property(TARGET ${target} APPEND PROPERTY KVSCOPE_BATCHED ${file})
endfunction()

# kvscope_registry(NAME HEADER header NAMESPACE ns TYPE type LIST function SUFFIX suffix SOURCES globs…)
#
# Adds a generated source to part NAME. It defines `const std::vector<type>& function()`, which calls
# `type <stem><suffix>()` of every file that the globs match. So adding an entry means adding a file, and no entry depends
# on static objects that a linker may drop. The source is compiled alone, because each new entry changes it.
function(kvscope_registry name)
    cmake_parse_arguments(registry "" "HEADER;NAMESPACE;TYPE;LIST;SUFFIX" "SOURCES" ${ARGN})
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${registry_HEADER})
        return()
    endif()
    list(TRANSFORM registry_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/)
    file(GLOB files CONFIGURE_DEPENDS ${registry_SOURCES})
    set(declarations "")
    set(calls "")
    foreach(file ${files})
        cmake_path(GET file STEM stem)
        string(APPEND declarations "${registry_TYPE} ${stem}${registry_SUFFIX}();\n")
        string(APPEND calls "        all.push_back(${stem}${registry_SUFFIX}());\n")
    endforeach()
    set(generated ${CMAKE_BINARY_DIR}/include/${name}/generated/${registry_LIST}.cpp)
    file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [[
#include <vector>

#include "@registry_HEADER@"

namespace @registry_NAMESPACE@ {

@declarations@
const std::vector<@registry_TYPE@>& @registry_LIST@() {
    static const std::vector<@registry_TYPE@> list = [] {
        std::vector<@registry_TYPE@> all;
@calls@        return all;
    }();
    return list;
}

}  // namespace @registry_NAMESPACE@
]])
    get_target_property(type kvscope_${name} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
        target_sources(kvscope_${name} PRIVATE ${generated})
    endif()
endfunction()
