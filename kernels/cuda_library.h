#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace kvscope::kernels::cuda {

/// CUDA is not available. what() names the missing component and what the user can do.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A CUDA call failed although CUDA is available, e.g. because device memory is full.
struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Returns why the CUDA kernels are not available, in words for the user, or an empty string if they are. Checked once.
[[nodiscard]] const std::string& unavailable_reason();

[[nodiscard]] inline bool available() { return unavailable_reason().empty(); }

/// Returns an exported function of libkvscope_cuda.so (see kernels/cuda/abi.h). The first call opens the library in
/// KVSCOPE_CUDA_LIBRARY_DIR, or else in the program's folder, ../lib/kvscope, ../lib, or the linker's search path.
/// Throws Unavailable.
void* find_library_function(const char* name);

}  // namespace kvscope::kernels::cuda
