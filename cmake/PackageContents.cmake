# cpack reads this file for each package. The list has four items per part: build folder, project, component, install folder.
list(SUBLIST CPACK_INSTALL_CMAKE_PROJECTS 0 4 CPACK_INSTALL_CMAKE_PROJECTS)
if(CPACK_GENERATOR STREQUAL "TGZ")
    list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build)
    list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${build} kvscope bundled /)
endif()
