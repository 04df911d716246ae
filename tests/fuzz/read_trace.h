#pragma once

#include <filesystem>

namespace kvscope::fuzz {

/// All that the program does with a trace that it is given: checks it, lists it, reads all of it.
void read_trace(const std::filesystem::path& path);

}  // namespace kvscope::fuzz
