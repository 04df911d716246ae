#pragma once

// Includes OpenGL 3.3 core, whose functions Window loads.
#include <glad/gl.h>
