#pragma once

#include <cstddef>

namespace kvscope::kernels {

/// Puts the first bytes of all elements together, then their second ones and so on, as HDF5's filter of that name does:
/// of numbers that are much alike, bytes of one rank pack better than whole numbers.
void shuffle_bytes(const unsigned char* elements, size_t n_elements, size_t element_bytes, unsigned char* shuffled);

/// The elements again.
void unshuffle_bytes(const unsigned char* shuffled, size_t n_elements, size_t element_bytes, unsigned char* elements);

}  // namespace kvscope::kernels
