# The app's libraries, from the sources of imgui-bundle: Dear ImGui (docking) with FreeType, ImPlot, ImCmd and GLFW.
#
# Targets: kvscope_imgui_headers for compiling; kvscope_imgui for programs; kvscope_imgui_testable for tests, with Dear
# ImGui Test Engine and its hooks. A program links one of the last two.
set(KVSCOPE_IMGUI ${KVSCOPE_PLACE_imgui})
kvscope_find_modules(libarchive-dev archive libarchive)
kvscope_find_modules(libfreetype-dev freetype freetype2)

find_package(glfw3 3.4 QUIET CONFIG)
if(NOT glfw3_FOUND)
    foreach(option DOCS TESTS EXAMPLES)
        set(GLFW_BUILD_${option} OFF CACHE INTERNAL "")
    endforeach()
    set(GLFW_INSTALL OFF CACHE INTERNAL "")
    set(BUILD_SHARED_LIBS OFF)
    add_subdirectory(${KVSCOPE_IMGUI}/glfw/glfw ${CMAKE_BINARY_DIR}/glfw EXCLUDE_FROM_ALL SYSTEM)
endif()

set(imgui ${KVSCOPE_IMGUI}/imgui/imgui)
set(implot ${KVSCOPE_IMGUI}/implot/implot)
set(palette ${KVSCOPE_IMGUI}/imgui-command-palette/imgui-command-palette)
set(test_engine ${KVSCOPE_IMGUI}/imgui_test_engine/imgui_test_engine)

add_library(kvscope_imgui_headers INTERFACE)
target_include_directories(kvscope_imgui_headers SYSTEM INTERFACE ${imgui} ${imgui}/backends ${imgui}/misc/cpp ${implot} ${palette}
    ${KVSCOPE_IMGUI}/portable_file_dialogs/portable_file_dialogs ${KVSCOPE_IMGUI}/glfw/glfw/deps)
# Indices have 32 bits, because a plot may have more than 65,535 vertices. Characters have 32 bits, because of emoji.
target_compile_definitions(kvscope_imgui_headers INTERFACE
    "ImDrawIdx=unsigned int" IMGUI_USE_WCHAR32 IMGUI_ENABLE_FREETYPE IMGUI_DISABLE_DEMO_WINDOWS GLFW_INCLUDE_NONE)
target_link_libraries(kvscope_imgui_headers INTERFACE glfw PkgConfig::freetype)

set(hooked_sources ${imgui}/imgui.cpp ${imgui}/imgui_demo.cpp ${imgui}/imgui_tables.cpp ${imgui}/imgui_widgets.cpp)
set(common_sources
    ${imgui}/imgui_draw.cpp ${imgui}/imgui_stacklayout.cpp ${imgui}/misc/cpp/imgui_stdlib.cpp
    ${imgui}/misc/freetype/imgui_freetype.cpp ${imgui}/backends/imgui_impl_glfw.cpp ${imgui}/backends/imgui_impl_opengl3.cpp
    ${implot}/implot.cpp ${implot}/implot_items.cpp ${palette}/imcmd_command_palette.cpp ${palette}/imcmd_fuzzy_search.cpp)
# ImPlot compiles each plot for ten number types, which takes 90 s. We plot doubles only.
set_source_files_properties(${implot}/implot_items.cpp PROPERTIES COMPILE_DEFINITIONS "IMPLOT_CUSTOM_NUMERIC_TYPES=(double)")
# app/gui/drawing/shaped_text.cpp redefines these functions to shape text in all scripts.
set_source_files_properties(${imgui}/imgui_draw.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    COMPILE_DEFINITIONS "AddText=AddUnshapedText;CalcTextSizeA=CalcUnshapedTextSizeA")
file(GLOB test_engine_sources ${test_engine}/imgui_test_engine/*.cpp)
add_library(kvscope_imgui_common OBJECT EXCLUDE_FROM_ALL ${common_sources})  # sources without hooks
target_link_libraries(kvscope_imgui_common PRIVATE kvscope_imgui_headers)
target_compile_options(kvscope_imgui_common PRIVATE -w ${KVSCOPE_QUICKLY_COMPILED})
set_target_properties(kvscope_imgui_common PROPERTIES UNITY_BUILD ${KVSCOPE_UNITY})
function(kvscope_imgui_library name)
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${hooked_sources} $<TARGET_OBJECTS:kvscope_imgui_common> ${ARGN})
    target_link_libraries(${name} PUBLIC kvscope_imgui_headers ${CMAKE_DL_LIBS} Threads::Threads)
    target_compile_options(${name} PRIVATE -w ${KVSCOPE_QUICKLY_COMPILED})
endfunction()
kvscope_imgui_library(kvscope_imgui)
set_target_properties(kvscope_imgui PROPERTIES UNITY_BUILD ${KVSCOPE_UNITY})
kvscope_imgui_library(kvscope_imgui_testable ${test_engine_sources})
target_include_directories(kvscope_imgui_testable SYSTEM PUBLIC ${test_engine}/imgui_test_engine)
target_compile_definitions(kvscope_imgui_testable PUBLIC IMGUI_ENABLE_TEST_ENGINE
    IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL=1 IMGUI_TEST_ENGINE_ENABLE_STD_FUNCTION=1
    IMGUI_TEST_ENGINE_ENABLE_CAPTURE=0)
