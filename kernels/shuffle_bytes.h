#pragma once

#include <cstddef>

namespace kvscope::kernels {

/// Groups the first bytes of all elements, then the second bytes and so on, as HDF5's shuffle filter does.
void shuffle_bytes(const unsigned char* elements, size_t n_elements, size_t element_bytes, unsigned char* shuffled);

void unshuffle_bytes(const unsigned char* shuffled, size_t n_elements, size_t element_bytes, unsigned char* elements);

}  // namespace kvscope::kernels
