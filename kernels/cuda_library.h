#pragma once

#include <stdexcept>
#include <string>

namespace kvscope::kernels::cuda {

/// The CUDA side cannot be used here; what() says which piece is missing and what to do.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Whether `--device cuda` would work for our own kernels: the library found and opened, a driver, a GPU. Never throws.
bool available();

/// The reason why not, as a person reads it; empty where `available()`.
std::string unavailable_reason();

/// A function of libkvscope_cuda.so, which is opened at the first call: from the folder named by KVSCOPE_CUDA_LIBRARY_DIR,
/// beside the program, in ../lib/kvscope from it, or in the build tree.
/// @throws Unavailable
void* symbol(const char* name);

}  // namespace kvscope::kernels::cuda
