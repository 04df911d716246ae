#include "kernels/shuffle_bytes.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <vector>

using namespace kvscope::kernels;

TEST_CASE("bytes are grouped by position and restored", "[kernels]") {
    for (const size_t size : {1, 2, 3, 4, 5, 8, 16, 37, 20000}) {
        for (const size_t n : {0, 1, 2, 15, 16, 17, 1000}) {
            std::vector<unsigned char> elements(n * size);
            for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<unsigned char>(i * 131 + i / 251);
            std::vector<unsigned char> expected(elements.size()), shuffled(elements.size()), again(elements.size());
            for (size_t i = 0; i < n; ++i)
                for (size_t byte = 0; byte < size; ++byte) expected[byte * n + i] = elements[i * size + byte];
            shuffle_bytes(elements.data(), n, size, shuffled.data());
            unshuffle_bytes(shuffled.data(), n, size, again.data());
            INFO(n << " elements of " << size << " bytes");
            CHECK(shuffled == expected);
            CHECK(again == elements);
        }
    }
}
