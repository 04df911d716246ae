# cmake --install copies bin/kvscope, its libraries to lib/kvscope, the assets and the default model to share/kvscope, and
# the manual page and the completion scripts, which kvscope prints.
set(private_libraries ${CMAKE_INSTALL_LIBDIR}/kvscope)
set(shared_data ${CMAKE_INSTALL_DATADIR}/kvscope)
set(licences ${CMAKE_INSTALL_DOCDIR})

# kvscope_install_licences(GLOB): installs licenses of packages that may be fetched after configuration, each in a folder
# named after its *.dist-info.
function(kvscope_install_licences glob)
    install(CODE "
        file(GLOB texts \"${glob}\")
        if(NOT texts)
            message(FATAL_ERROR \"expected licences at ${glob}, found none\")
        endif()
        foreach(text IN LISTS texts)
            string(REGEX REPLACE \".*/([^/]*\\\\.dist-info)/.*\" \"\\\\1\" package \"\${text}\")
            file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${licences}/\${package}\" TYPE FILE FILES \"\${text}\")
        endforeach()")
endfunction()

if(TARGET kvscope)
    file(RELATIVE_PATH to_libraries /${CMAKE_INSTALL_BINDIR} /${private_libraries})
    set_target_properties(kvscope PROPERTIES INSTALL_RPATH $ORIGIN/${to_libraries})
    # RPATH, not RUNPATH: the path also applies to libraries that bundled libraries need (cmake/Package.cmake).
    target_link_options(kvscope PRIVATE -Wl,--disable-new-dtags)
    install(TARGETS kvscope RUNTIME)
    # kvscope_install_printed(FILE ARGUMENTS…): installs a file that contains what kvscope prints.
    function(kvscope_install_printed file)
        cmake_path(GET file PARENT_PATH folder)
        cmake_path(GET file FILENAME name)
        set(printed ${CMAKE_BINARY_DIR}/printed/${name})
        install(CODE "
            file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/printed\")
            execute_process(COMMAND \"$<TARGET_FILE:kvscope>\" ${ARGN} OUTPUT_FILE \"${printed}\" COMMAND_ERROR_IS_FATAL ANY)
            file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/${folder}\" TYPE FILE FILES \"${printed}\")")
    endfunction()
    kvscope_install_printed(man/man1/kvscope.1 --man)
    kvscope_install_printed(bash-completion/completions/kvscope --completion bash)
    kvscope_install_printed(zsh/site-functions/_kvscope --completion zsh)
    kvscope_install_printed(zsh/vendor-completions/_kvscope --completion zsh)  # Debian's folder below /usr
    kvscope_install_printed(fish/vendor_completions.d/kvscope.fish --completion fish)
endif()
if(TARGET kvscope_chat_template)  # only kvscope starts it, so it is not in bin
    set_target_properties(kvscope_chat_template PROPERTIES INSTALL_RPATH $ORIGIN)
    install(TARGETS kvscope_chat_template RUNTIME DESTINATION ${private_libraries})
endif()
if(TARGET kvscope_cuda)
    install(TARGETS kvscope_cuda LIBRARY DESTINATION ${private_libraries} OPTIONAL)  # optional: kvscope runs without it
endif()
if(KVSCOPE_TORCH)
    install(FILES
        ${KVSCOPE_TORCH}/torch/lib/libc10.so
        ${KVSCOPE_TORCH}/torch/lib/libtorch_cpu.so
        ${KVSCOPE_TORCH}/torch/lib/libgomp.so.1
        ${KVSCOPE_TORCH}/nvidia/cu13/lib/libcudart.so.13
        ${KVSCOPE_TORCH}/nvidia/cu13/lib/libcupti.so.13
        DESTINATION ${private_libraries})
    kvscope_install_licences("${KVSCOPE_TORCH}/*.dist-info/licenses/*")
endif()

if(EXISTS ${CMAKE_SOURCE_DIR}/assets)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/assets/ DESTINATION ${shared_data})
endif()
install(FILES ${KVSCOPE_DEFAULT_MODEL} DESTINATION ${shared_data}/models)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/THIRD_PARTY_NOTICES.md DESTINATION ${licences})
install(FILES ${KVSCOPE_LLAMA_SOURCE}/LICENSE DESTINATION ${licences}/llama.cpp)
if(KVSCOPE_IMGUI)
    install(FILES ${KVSCOPE_IMGUI}/imgui/imgui/LICENSE.txt DESTINATION ${licences}/imgui)
    install(FILES ${KVSCOPE_IMGUI}/implot/implot/LICENSE DESTINATION ${licences}/implot)
    install(FILES ${KVSCOPE_IMGUI}/imgui-command-palette/imgui-command-palette/LICENSE
        DESTINATION ${licences}/imgui-command-palette)
    install(FILES ${KVSCOPE_IMGUI}/glfw/glfw/LICENSE.md DESTINATION ${licences}/glfw)
endif()
cmake_path(GET KVSCOPE_DEFAULT_MODEL PARENT_PATH model_package)
cmake_path(GET model_package PARENT_PATH model_packages)
kvscope_install_licences("${model_packages}/*.dist-info/LICENSE")
