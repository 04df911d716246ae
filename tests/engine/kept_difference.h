#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.h"
#include "trace/records/records.h"

namespace kvscope::engine::testing {

/// Decodes positions that scripts/golden/vlq.py encoded.
[[nodiscard]] inline std::vector<uint32_t> decode_positions(const std::string& text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::vector<uint32_t> numbers, positions;
    uint32_t value = 0, shift = 0;
    for (const char c : text) {
        const auto digit = static_cast<uint32_t>(digits.find(c));
        value |= (digit & 31u) << shift;
        shift += 5;
        if (digit < 32) {
            numbers.push_back(value);
            value = shift = 0;
        }
    }
    uint32_t place = 0;
    for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
        for (uint32_t j = 0; j < numbers[i + 1]; ++j) positions.push_back(place + numbers[i] + j);
        place += numbers[i] + numbers[i + 1];
    }
    return positions;
}

[[nodiscard]] inline std::vector<std::string> words(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> all;
    for (std::string word; stream >> word;) all.push_back(word);
    return all;
}

/// Difference of a run from a reference case: numbers of entries, of different ones, and of those beyond rounding.
struct Difference {
    size_t entries = 0, differing = 0, unexplained = 0;
};

/// @param reference with `kept` and `near` from scripts/golden/kept_sets.py
[[nodiscard]] inline Difference difference_of(const trace::Kept& kept, const nlohmann::json& reference) {
    Difference difference;
    for (size_t layer = 0; layer < kept.n_layers; ++layer) {
        const auto rows = words(reference["kept"][layer].get<std::string>());
        REQUIRE(rows.size() == kept.n_rows);
        for (size_t row = 0; row < rows.size(); ++row) {
            const auto expected = decode_positions(rows[row]);
            const auto found = kept.row(layer, row);
            std::set<uint32_t> near;
            const std::string key = std::to_string(layer) + "." + std::to_string(row);
            if (reference["near"].contains(key)) {
                for (const uint32_t p : decode_positions(reference["near"][key].get<std::string>())) near.insert(p);
            }
            std::vector<uint32_t> either;
            std::set_symmetric_difference(expected.begin(), expected.end(), found.begin(), found.end(),
                                          std::back_inserter(either));
            difference.entries += expected.size();
            difference.differing += either.size();
            for (const uint32_t p : either) difference.unexplained += !near.contains(p);
        }
    }
    return difference;
}

}  // namespace kvscope::engine::testing
