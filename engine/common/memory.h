#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace kvscope::engine {

/// Bytes of this process that lie in memory now; 0 where the system does not tell.
uint64_t resident_bytes();

/// What this process may still take.
struct AvailableMemory {
    std::optional<uint64_t> bytes;  ///< nullopt where the system does not tell
    std::string limit = {};         ///< what keeps it from more; empty: the machine has no more free
};
/// The least of what the machine has free, what its control group (of either version, with those above it) leaves it,
/// and what `ulimit -v` and `-d` leave it. @param root where the machine's memory and the groups are looked up
AvailableMemory available_memory(const std::filesystem::path& root = "/");

/// Nothing where so much is available, or KVSCOPE_ANY_MEMORY is set to something.
/// @param what "model.gguf: its weights need"
/// @param remedy "take a file with smaller weights": what a person can do besides closing other programs
/// @throws RunError with both numbers
void require_available(uint64_t bytes, const std::string& what, const std::string& remedy);

/// Highest resident set since `reset_peak`, or since the start where resetting is not allowed.
uint64_t peak_resident_bytes();

/// Gives freed memory back to the system and starts the peak anew. False where the system does not allow it.
bool reset_peak();

}  // namespace kvscope::engine
