#pragma once

namespace kvscope::program {

/// "0.1.0", as CMake's project() has it.
const char* version();

}  // namespace kvscope::program
