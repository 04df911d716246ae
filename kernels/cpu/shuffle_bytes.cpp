#include "kernels/shuffle_bytes.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace kvscope::kernels {

namespace {

static_assert(std::endian::native == std::endian::little, "transpose() shifts the first bytes to the low end");

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

constexpr size_t side = 8;
using Square = std::array<uint64_t, side>;

/// Transposes a square of bytes, in 4 × 4, 2 × 2 and single bytes.
void transpose(Square& rows) {
    const auto swap = [&](size_t distance, uint64_t mask) {
        for (size_t i = 0; i < side; ++i) {
            if (i & distance) continue;
            uint64_t& low = rows[i];
            uint64_t& high = rows[i + distance];
            const uint64_t moved = ((low >> (8 * distance)) ^ high) & mask;
            high ^= moved;
            low ^= moved << (8 * distance);
        }
    };
    swap(4, 0x00000000FFFFFFFF);
    swap(2, 0x0000FFFF0000FFFF);
    swap(1, 0x00FF00FF00FF00FF);
}

/// Writes the transpose of a matrix of (rows, columns) bytes.
void transpose(const unsigned char* __restrict from, size_t rows, size_t columns, unsigned char* __restrict to) {
    const size_t whole_rows = rows / side * side, whole_columns = columns / side * side;
    for (size_t column = 0; column < whole_columns; column += side) {
        for (size_t row = 0; row < whole_rows; row += side) {
            Square square;
            for (size_t i = 0; i < side; ++i) std::memcpy(&square[i], from + (row + i) * columns + column, side);
            transpose(square);
            for (size_t i = 0; i < side; ++i) std::memcpy(to + (column + i) * rows + row, &square[i], side);
        }
    }
    const auto copy = [&](size_t row, size_t column) { to[column * rows + row] = from[row * columns + column]; };
    for (size_t row = 0; row < rows; ++row)
        for (size_t column = row < whole_rows ? whole_columns : 0; column < columns; ++column) copy(row, column);
}

}  // namespace

void shuffle_bytes(const unsigned char* elements, size_t n, size_t size, unsigned char* shuffled) {
    if (size == 2) return shuffle<2>(elements, n, shuffled);
    if (size == 4) return shuffle<4>(elements, n, shuffled);
    if (size == 8) return shuffle<8>(elements, n, shuffled);
    transpose(elements, n, size, shuffled);
}

void unshuffle_bytes(const unsigned char* shuffled, size_t n, size_t size, unsigned char* elements) {
    if (size == 2) return unshuffle<2>(shuffled, n, elements);
    if (size == 4) return unshuffle<4>(shuffled, n, elements);
    if (size == 8) return unshuffle<8>(shuffled, n, elements);
    transpose(shuffled, size, n, elements);
}

}  // namespace kvscope::kernels
