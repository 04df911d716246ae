#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::engine {

/// Returns the resident memory of this process in bytes, or 0 if it is unknown.
uint64_t resident_bytes();

/// Memory that this process may still allocate.
struct AvailableMemory {
    std::optional<uint64_t> bytes;  ///< nullopt if the system does not report it
    std::string limit = {};         ///< what limits the memory; empty if it is the machine's free memory
};
/// Returns the minimum of the machine's free memory and the limits of control groups, `ulimit -v` and `ulimit -d`.
/// @param root folder that contains proc and sys
AvailableMemory available_memory(const std::filesystem::path& root = "/");

/// Checks that `bytes` are available, unless the environment variable KVSCOPE_ANY_MEMORY is set.
/// @param what start of the message, such as "model.gguf: its weights need"
/// @param remedy advice, such as "use a file with smaller weights"
/// @throws RunError with both numbers if they are not
void require_available(uint64_t bytes, const std::string& what, const std::string& remedy);

/// Returns the highest resident set since `reset_peak`, or since the program's start if it cannot be reset.
uint64_t peak_resident_bytes();

/// Returns freed memory to the system and resets the peak. Returns false if the system does not allow it.
bool reset_peak();

}  // namespace kvscope::engine
