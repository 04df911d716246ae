#pragma once

// OpenGL 3.3 core. Window loads the functions.
#include <glad/gl.h>
