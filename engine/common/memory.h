#pragma once

#include <cstdint>

namespace kvscope::engine {

/// Bytes of this process that lie in memory now; 0 where the system does not tell.
uint64_t resident_bytes();

/// Bytes that the machine has for more; 0 where the system does not tell.
uint64_t available_bytes();

/// Highest resident set since `reset_peak`, or since the start where resetting is not allowed.
uint64_t peak_resident_bytes();

/// Gives freed memory back to the system and starts the peak anew. False where the system does not allow it.
bool reset_peak();

}  // namespace kvscope::engine
