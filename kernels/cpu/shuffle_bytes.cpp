#include "kernels/shuffle_bytes.h"

#include <algorithm>

namespace kvscope::kernels {

namespace {

/// A constant size lets the compiler vectorize the inner loops.
template <size_t size>
void shuffle(const unsigned char* __restrict elements, size_t n, unsigned char* __restrict shuffled) {
    for (size_t i = 0; i < n; ++i)
        for (size_t byte = 0; byte < size; ++byte) shuffled[byte * n + i] = elements[i * size + byte];
}

template <size_t size>
void unshuffle(const unsigned char* __restrict shuffled, size_t n, unsigned char* __restrict elements) {
    for (size_t i = 0; i < n; ++i)
        for (size_t byte = 0; byte < size; ++byte) elements[i * size + byte] = shuffled[byte * n + i];
}

template <class Body>
void in_blocks(size_t n, size_t size, const Body& body) {
    const size_t together = std::max<size_t>(1, 16384 / std::max<size_t>(1, size));
    for (size_t begin = 0; begin < n; begin += together) body(begin, std::min(n, begin + together));
}

}  // namespace

void shuffle_bytes(const unsigned char* elements, size_t n, size_t size, unsigned char* shuffled) {
    if (size == 2) return shuffle<2>(elements, n, shuffled);
    if (size == 4) return shuffle<4>(elements, n, shuffled);
    if (size == 8) return shuffle<8>(elements, n, shuffled);
    in_blocks(n, size, [&](size_t begin, size_t end) {
        for (size_t byte = 0; byte < size; ++byte)
            for (size_t i = begin; i < end; ++i) shuffled[byte * n + i] = elements[i * size + byte];
    });
}

void unshuffle_bytes(const unsigned char* shuffled, size_t n, size_t size, unsigned char* elements) {
    if (size == 2) return unshuffle<2>(shuffled, n, elements);
    if (size == 4) return unshuffle<4>(shuffled, n, elements);
    if (size == 8) return unshuffle<8>(shuffled, n, elements);
    in_blocks(n, size, [&](size_t begin, size_t end) {
        for (size_t byte = 0; byte < size; ++byte)
            for (size_t i = begin; i < end; ++i) elements[i * size + byte] = shuffled[byte * n + i];
    });
}

}  // namespace kvscope::kernels
