#pragma once

// OpenGL 3.3 core, loaded by Window.
#include <glad/gl.h>
