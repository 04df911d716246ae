# The target kvscope_package makes a Debian package and an archive (.tar.gz), which runs in any folder of a Debian 12 system
# without further packages. For this, the archive also contains the component `bundled`: Debian's shared libraries, except
# those of every system, and fonts. Their licenses are in share/doc/kvscope/PACKAGE.
install(FILES ${CMAKE_SOURCE_DIR}/cmake/kvscope.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)

set(fonts /usr/share/fonts)
install(FILES
    ${fonts}/opentype/inter/Inter-Regular.otf ${fonts}/opentype/inter/Inter-SemiBold.otf
    ${fonts}/truetype/jetbrains-mono/JetBrainsMono-Regular.ttf ${fonts}/truetype/jetbrains-mono/JetBrainsMono-SemiBold.ttf
    DESTINATION ${shared_data}/fonts COMPONENT bundled EXCLUDE_FROM_ALL)
string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" cache_pattern "${KVSCOPE_CACHE}/")
install(CODE "
    set(fetched_libraries [[${cache_pattern}]])  # installed without this component
    set(libraries_folder \"\${CMAKE_INSTALL_PREFIX}/${private_libraries}\")
    set(licences_folder \"\${CMAKE_INSTALL_PREFIX}/${licences}\")"
    COMPONENT bundled EXCLUDE_FROM_ALL)
install(CODE [=[
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES $<TARGET_FILE:kvscope> RESOLVED_DEPENDENCIES_VAR libraries
        PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|util|pthread|resolv|stdc\\+\\+|gcc_s)\\.so"
        POST_EXCLUDE_REGEXES "^${fetched_libraries}")
    file(INSTALL ${libraries} DESTINATION ${libraries_folder} FOLLOW_SYMLINK_CHAIN)
    set(names fonts-inter fonts-jetbrains-mono)
    foreach(library IN LISTS libraries)
        # Packages contain /lib/… or /usr/lib/…; both are the same folder.
        execute_process(COMMAND dpkg-query --search ${library} /usr${library} OUTPUT_VARIABLE found ERROR_QUIET)
        if(NOT found MATCHES "^([^:]+):")
            message(FATAL_ERROR "${library} belongs to no Debian package, so its license is unknown: install its package")
        endif()
        list(APPEND names ${CMAKE_MATCH_1})
    endforeach()
    list(REMOVE_DUPLICATES names)
    foreach(name IN LISTS names)
        file(INSTALL /usr/share/doc/${name}/copyright DESTINATION ${licences_folder}/${name})
    endforeach()]=]
    COMPONENT bundled EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "The kvscope authors")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGE_FILE_NAME kvscope-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS  # whatever the umask is
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_THREADS 0)  # one per core
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/PackageContents.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)  # in a third of gzip's time
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${KVSCOPE_TORCH}/torch/lib ${KVSCOPE_TORCH}/nvidia/cu13/lib)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "fonts-inter, fonts-jetbrains-mono")
# The app opens the libraries of its display at run time.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fonts-noto-cjk, fonts-noto-color-emoji, libgl1, libgl1-mesa-dri, libwayland-client0, \
libwayland-cursor0, libwayland-egl1, libx11-6, libxcursor1, libxi6, libxinerama1, libxkbcommon0, libxrandr2, xclip")
include(CPack)

add_custom_target(kvscope_package COMMAND ${CMAKE_CPACK_COMMAND}
    COMMAND ${CMAKE_COMMAND} -E rm -r ${CPACK_PACKAGE_DIRECTORY}/_CPack_Packages USES_TERMINAL)
add_dependencies(kvscope_package kvscope)
if(TARGET kvscope_cuda)
    add_dependencies(kvscope_package kvscope_cuda)
endif()
