#include "trace/records/kept.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope::trace {

std::span<const std::uint32_t> Kept::held(std::size_t layer, std::size_t row) const {
    if (!merges()) return this->row(layer, row);
    const std::size_t i = layer * n_rows + row;
    return {held_tokens.data() + held_offsets[i], static_cast<std::size_t>(held_offsets[i + 1] - held_offsets[i])};
}

bool Kept::is_in_parts(std::size_t layer, std::size_t row, std::size_t entry) const {
    const std::size_t place = layer * n_rows + row;
    if (stored_entries.empty()) return false;
    return is_whole.empty() ? entry < stored_entries[place] : is_whole[offsets[place] + entry] == 0;
}

TokenFate Kept::fate(std::size_t layer, std::size_t row, std::uint32_t token) const {
    const std::size_t place = layer * n_rows + row;
    const auto entries = this->row(layer, row);
    std::size_t entry = 0;
    if (merges()) {
        const std::size_t n_tokens = token_entry.size() / (n_layers * n_rows);
        const std::int32_t found = token < n_tokens ? token_entry[place * n_tokens + token] : -1;
        if (found < 0) return {};
        entry = static_cast<std::size_t>(found);
    } else {
        const auto found = std::lower_bound(entries.begin(), entries.end(), token);
        if (found == entries.end() || *found != token) return {};
        entry = static_cast<std::size_t>(found - entries.begin());
    }
    TokenFate fate;
    fate.entry = entries[entry];
    if (!cardinality.empty()) fate.cardinality = cardinality[offsets[place] + entry];
    if (!n_merged.empty()) fate.n_tokens = n_merged[offsets[place] + entry];
    if (fate.entry != token || fate.n_tokens > 1 || fate.cardinality != 1)
        fate.kind = TokenFate::Kind::merged;
    else
        fate.kind = is_in_parts(layer, row, entry) ? TokenFate::Kind::rebuilt : TokenFate::Kind::whole;
    if (fate.kind != TokenFate::Kind::whole) {
        if (!key_error.empty()) fate.key_error = key_error[place];
        if (!value_error.empty()) fate.value_error = value_error[place];
    }
    return fate;
}

void Kept::find_held_tokens() {
    const std::size_t rows = n_layers * n_rows;
    const std::size_t n_tokens = rows > 0 ? token_entry.size() / rows : 0;
    held_offsets.assign(1, 0);
    held_tokens.clear();
    held_with.clear();
    n_merged.assign(static_cast<std::size_t>(offsets.back()), 0);
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t token = 0; token < n_tokens; ++token) {
            const std::int32_t entry = token_entry[row * n_tokens + token];
            if (entry < 0) continue;
            held_tokens.push_back(static_cast<std::uint32_t>(token));
            ++n_merged[offsets[row] + static_cast<std::uint64_t>(entry)];
        }
        held_offsets.push_back(held_tokens.size());
    }
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::uint64_t i = held_offsets[row]; i < held_offsets[row + 1]; ++i) {
            const std::int32_t entry = token_entry[row * n_tokens + held_tokens[i]];
            held_with.push_back(n_merged[offsets[row] + static_cast<std::uint64_t>(entry)]);
        }
    }
}

std::string problem_of_kept(std::span<const std::uint64_t> offsets, std::span<const std::uint32_t> indices,
                            std::size_t n) {
    if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
        offsets.back() != indices.size()) {
        return fmt::format("kept_offsets: expected values that rise from 0 to {}, the length of kept_indices",
                           indices.size());
    }
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
        for (std::uint64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
            if (indices[i] >= n)
                return fmt::format("kept_indices: expected positions below {}, found {}", n, indices[i]);
            if (i > offsets[row] && indices[i] <= indices[i - 1])
                return fmt::format("kept_indices: expected ascending positions in row {}, found {} after {}", row,
                                   indices[i], indices[i - 1]);
        }
    }
    return {};
}

std::string problem_of_token_entries(std::span<const std::uint64_t> offsets, std::span<const std::int32_t> token_entry,
                                     std::size_t n) {
    for (std::size_t i = 0; i < token_entry.size(); ++i) {
        const std::size_t row = i / n;
        const auto count = static_cast<std::int64_t>(offsets[row + 1] - offsets[row]);
        if (token_entry[i] < -1 || token_entry[i] >= count)
            return fmt::format("merged/token_entry: expected -1 or an entry below {} in row {}, found {}", count, row,
                               token_entry[i]);
    }
    return {};
}

}  // namespace kvscope::trace
