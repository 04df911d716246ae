# Finds the libraries: Debian packages through find_package and pkg-config, other packages through cmake/dependencies.txt.
# All are imported targets, so that their headers count as system headers.

# kvscope_find(PACKAGE name…) and kvscope_find_modules(PACKAGE name…) are find_package and pkg_check_modules. If the library is
# missing, they name the Debian package that contains it.
function(kvscope_require_found found debian_package name)
    if(NOT found)
        message(FATAL_ERROR "${name} was not found. Install the packages of scripts/packages*.txt, or at least:\n"
            "  apt-get install ${debian_package}")
    endif()
endfunction()
macro(kvscope_find debian_package name)
    find_package(${name} ${ARGN} QUIET)
    kvscope_require_found("${${name}_FOUND}" ${debian_package} ${name})
endmacro()
macro(kvscope_find_modules debian_package name)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET ${ARGN})
    kvscope_require_found("${${name}_FOUND}" ${debian_package} ${name})
endmacro()

kvscope_find(python3 Python3 3.9 COMPONENTS Interpreter)
kvscope_find(pkg-config PkgConfig)
kvscope_find(g++ OpenMP COMPONENTS CXX)
# Links libgomp by a flag. With a path, the program would load a second copy in addition to the one next to libtorch.
set_target_properties(OpenMP::OpenMP_CXX PROPERTIES INTERFACE_LINK_LIBRARIES "" INTERFACE_LINK_OPTIONS -fopenmp)
kvscope_find(libc6-dev Threads)
kvscope_find(libhdf5-dev HDF5 1.10.5 COMPONENTS C)
kvscope_find(libcli11-dev CLI11)
kvscope_find(nlohmann-json3-dev nlohmann_json)
kvscope_find(libfmt-dev fmt)
kvscope_find(libspdlog-dev spdlog)
kvscope_find(libeigen3-dev Eigen3 NO_MODULE)
if(KVSCOPE_SANITIZE)
    # In these builds, g++ 12 inlines Eigen's prefetches with non-constant arguments, which cause an error. All parts need the
    # same definition, because Eigen's allocation depends on it and parts free each other's memory.
    target_compile_definitions(Eigen3::Eigen INTERFACE EIGEN_DONT_VECTORIZE)
endif()
kvscope_find_modules("libcairo2-dev libpango1.0-dev libfontconfig-dev" cairo
    cairo cairo-pdf cairo-svg cairo-ft pangocairo fontconfig)
kvscope_find_modules(libpcre2-dev pcre2 libpcre2-8)
kvscope_find_modules(libutf8proc-dev utf8proc libutf8proc)
kvscope_find_modules(libfribidi-dev fribidi fribidi)
kvscope_find_modules(libxxhash-dev xxhash libxxhash)
kvscope_find_modules(libdeflate-dev libdeflate libdeflate)
kvscope_find_modules(libyaml-cpp-dev yaml_cpp yaml-cpp)

# The first configuration fetches pinned packages in parallel. It does not wait for the packages in `later`, because the first
# sources compile without them.
set(things llama-source)
set(later model)
if(KVSCOPE_ENGINE)
    find_package(Torch 2.11 QUIET CONFIG)
    if(NOT Torch_FOUND)
        list(APPEND later libtorch)
    endif()
endif()
if(KVSCOPE_GUI)
    list(APPEND things imgui)
endif()
if(KVSCOPE_TESTS AND Python3_VERSION VERSION_GREATER_EQUAL 3.11 AND Python3_VERSION VERSION_LESS 3.12)
    list(APPEND things python-modules)
endif()
set(fetch ${CMAKE_COMMAND} -E env KVSCOPE_CACHE=${KVSCOPE_CACHE} ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/fetch.py)
# Runs in the background. If it fails, the build fetches the package when needed and reports errors then.
execute_process(COMMAND sh -c "exec \"$@\" >'${CMAKE_BINARY_DIR}/fetch-later.log' 2>&1 </dev/null &" sh ${fetch} ${later})
execute_process(COMMAND ${fetch} ${things} OUTPUT_VARIABLE places OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
    message(FATAL_ERROR "cmake/fetch.py ${things} failed; see its message above")
endif()
execute_process(COMMAND ${fetch} --where ${later} OUTPUT_VARIABLE later_places OUTPUT_STRIP_TRAILING_WHITESPACE)
file(WRITE ${CMAKE_BINARY_DIR}/fetched.txt "${places}\n")  # scripts/build reconfigures if one of these is missing
string(REPLACE "\n" ";" places "${places}")
foreach(thing place IN ZIP_LISTS things places)
    string(REPLACE "-" "_" thing ${thing})
    set(KVSCOPE_PLACE_${thing} ${place})
endforeach()
string(REPLACE "\n" ";" later_places "${later_places}")
foreach(thing place IN ZIP_LISTS later later_places)
    set(KVSCOPE_PLACE_${thing} ${place})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/cmake/dependencies.txt ${CMAKE_SOURCE_DIR}/cmake/fetch.py)

# kvscope_fetched(TARGET thing files…): adds a target for the files, which fetch.py provides when it fetches `thing`.
function(kvscope_fetched target thing)
    add_custom_command(OUTPUT ${ARGN} COMMAND ${fetch} ${thing} > /dev/null COMMENT "Fetching ${thing}" VERBATIM)
    add_custom_target(${target} DEPENDS ${ARGN})
endfunction()
kvscope_fetched(kvscope_model model ${KVSCOPE_PLACE_model})
set(KVSCOPE_LLAMA_SOURCE ${KVSCOPE_PLACE_llama_source})
set(KVSCOPE_DEFAULT_MODEL ${KVSCOPE_PLACE_model})

# The CPU part of libtorch. Its own CMake package requires a CUDA toolkit, so the targets are defined here.
if(KVSCOPE_ENGINE)
    add_library(kvscope_torch INTERFACE)
    target_compile_definitions(kvscope_torch INTERFACE AT_PER_OPERATOR_HEADERS)
    if(Torch_FOUND)
        target_link_libraries(kvscope_torch INTERFACE torch_cpu c10)
        add_custom_target(kvscope_libtorch)  # nothing to fetch
    else()
        set(KVSCOPE_TORCH ${KVSCOPE_PLACE_libtorch})
        foreach(name c10 torch_cpu)
            add_library(${name} SHARED IMPORTED)
            set_target_properties(${name} PROPERTIES
                IMPORTED_LOCATION ${KVSCOPE_TORCH}/torch/lib/lib${name}.so
                IMPORTED_SONAME lib${name}.so)
        endforeach()
        target_link_libraries(torch_cpu INTERFACE c10)
        kvscope_fetched(kvscope_libtorch libtorch ${KVSCOPE_TORCH}/torch/lib/libc10.so ${KVSCOPE_TORCH}/torch/lib/libtorch_cpu.so)
        add_dependencies(c10 kvscope_libtorch)
        add_dependencies(torch_cpu kvscope_libtorch)
        # libtorch_cpu finds the CUDA runtime by its run path, but the linker needs an option.
        target_link_options(torch_cpu INTERFACE
            -Wl,-rpath-link,${KVSCOPE_TORCH}/nvidia/cu13/lib:${KVSCOPE_TORCH}/torch/lib)
        target_link_libraries(kvscope_torch INTERFACE torch_cpu)
        # These folders are set here, because the include folders of imported targets must exist during configuration.
        target_include_directories(kvscope_torch SYSTEM INTERFACE
            ${KVSCOPE_TORCH}/torch/include ${KVSCOPE_TORCH}/torch/include/torch/csrc/api/include)
    endif()
    add_library(kvscope::torch ALIAS kvscope_torch)
endif()

include(Llama)

if(KVSCOPE_GUI)
    include(Imgui)
endif()
