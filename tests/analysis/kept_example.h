// Kept sets that are small enough to count by hand, and a loop that counts any kept sets.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis::test {

/// Rows of kept positions that own their arrays.
struct OwnedSets {
    size_t n_layers;
    size_t n_rows;
    size_t n_tokens;
    std::vector<uint64_t> offsets{0};
    std::vector<uint32_t> indices;
    std::vector<uint32_t> entry_tokens{};

    OwnedSets(size_t layers, size_t rows, size_t tokens, const std::vector<std::vector<uint32_t>>& lists)
        : n_layers(layers), n_rows(rows), n_tokens(tokens) {
        for (const auto& list : lists) {
            indices.insert(indices.end(), list.begin(), list.end());
            offsets.push_back(indices.size());
        }
    }
    [[nodiscard]] KeptSets view() const { return {n_layers, n_rows, n_tokens, offsets, indices, entry_tokens}; }
    [[nodiscard]] bool keeps(size_t layer, size_t row, uint32_t token) const {
        for (const uint32_t kept : view().row(layer, row)) {
            if (kept == token) return true;
        }
        return false;
    }
};

/// Two layers of two heads, six tokens:  layer 0: {0, 1, 5} {0, 5};  layer 1: {} {2, 5}.
[[nodiscard]] inline OwnedSets by_hand() { return {2, 2, 6, {{0, 1, 5}, {0, 5}, {}, {2, 5}}}; }

[[nodiscard]] inline OwnedSets random_sets(size_t layers, size_t rows, size_t tokens, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<uint32_t>> lists;
    for (size_t i = 0; i < layers * rows; ++i) {
        std::set<uint32_t> list;
        for (size_t j = random() % (tokens + 1); j > 0; --j) list.insert(static_cast<uint32_t>(random() % tokens));
        lists.emplace_back(list.begin(), list.end());
    }
    return {layers, rows, tokens, lists};
}

}  // namespace kvscope::analysis::test
