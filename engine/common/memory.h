#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::engine {

/// Returns the resident memory of this process in bytes; 0 if unknown.
[[nodiscard]] uint64_t resident_bytes();

struct AvailableMemory {
    std::optional<uint64_t> bytes;  ///< nullopt if the system does not report it
    std::string limit = {};  ///< limit of the memory, such as "ulimit -v"; empty if it is the machine's free memory
};
/// Returns the least of the machine's free memory and the limits of control groups, `ulimit -v` and `ulimit -d`.
[[nodiscard]] AvailableMemory available_memory(const std::filesystem::path& root = "/");

/// Checks that `bytes` of memory are available, unless the environment variable KVSCOPE_ANY_MEMORY is set.
/// @param what start of the message, such as "model.gguf: its weights need"
/// @param remedy advice, such as "use a file with smaller weights"
/// @throws RunError with the required and the available bytes if the memory is too small
void require_available_memory(uint64_t bytes, const std::string& what, const std::string& remedy);

/// Returns the highest resident bytes since reset_peak_memory(), or since the program's start if no reset is possible.
[[nodiscard]] uint64_t peak_resident_bytes();

/// Returns freed memory to the system and resets the peak. Returns false if the system does not allow a reset.
bool reset_peak_memory();

}  // namespace kvscope::engine
