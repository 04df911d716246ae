#pragma once

// Declares OpenGL 3.3 core. Window loads the functions.
#include <glad/gl.h>
