#include "policies/api/stored_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>

#include "policies/api/policy.h"
#include "policies/api/policy_errors.h"

namespace kvscope::policies {
namespace {

struct Place {
    std::string_view policy;
    int layer;
    size_t row;
    [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
        throw SelectionError(fmt::format("entries stored by {} in layer {}, row {}: expected {}, found {}", policy,
                                         layer, row, expected, found));
    }
    void require_size(std::string_view what, size_t expected, size_t found) const {
        if (expected != found) refuse(fmt::format("{} {}", expected, what), std::to_string(found));
    }
};

void require_channels(const Place& place, const std::vector<uint16_t>& channels, int head_dim) {
    for (size_t i = 0; i < channels.size(); ++i) {
        if (channels[i] >= head_dim)
            place.refuse(fmt::format("channels below {}", head_dim), std::to_string(channels[i]));
        if (i > 0 && channels[i] <= channels[i - 1])
            place.refuse("channels in ascending order, each once",
                         fmt::format("{} after {}", channels[i], channels[i - 1]));
    }
}

void require_block(const Place& place, const StoredPart& part, size_t n) {
    place.require_size("own numbers in a part with a shared block", 0, part.numbers.size());
    if (part.first_column < 0 || part.first_column > part.block->width - part.width)
        place.refuse(fmt::format("columns below {}", part.block->width),
                     fmt::format("{} columns from {}", part.width, part.first_column));
    place.require_size("numbers in a shared block", n * static_cast<size_t>(part.block->width),
                       part.block->numbers.size());
}

void require_part(const Place& place, const StoredPart& part, size_t n, int head_dim) {
    if (part.width < 1) place.refuse("parts with at least one number", std::to_string(part.width));
    const auto width = static_cast<size_t>(part.width);
    if (!part.numbers.empty()) place.require_size("numbers in a part", n * width, part.numbers.size());
    if (!part.scales.empty()) place.require_size("scales in a part", n, part.scales.size());
    if (part.block) require_block(place, part, n);
    require_channels(place, part.channels, head_dim);
    if (part.map) {
        if (part.numbers.empty() && !part.block) place.refuse("numbers for a map", "none");
        place.require_size("rows in a map", width, static_cast<size_t>(part.map->n_rows));
        place.require_size("columns in a map", static_cast<size_t>(head_dim), static_cast<size_t>(part.map->n_columns));
        place.require_size("numbers in a map", static_cast<size_t>(head_dim) * width, part.map->numbers.size());
        place.require_size("channels in a part with a map", 0, part.channels.size());
        place.require_size("scales in a part with a map", 0, part.scales.size());
    } else {
        const size_t n_channels = part.channels.empty() ? static_cast<size_t>(head_dim) : part.channels.size();
        place.require_size("numbers per entry, one for each channel", n_channels, width);
    }
}

void require_ascending(const Place& place, const std::vector<uint32_t>& positions) {
    const auto next = std::adjacent_find(positions.begin(), positions.end(), std::greater_equal<>());
    if (next != positions.end())
        place.refuse("positions in ascending order, each once", fmt::format("{} after {}", *(next + 1), *next));
}

void require_entries(const Place& place, const StoredEntries& entries, int head_dim) {
    const size_t n = entries.positions.size();
    if (n == 0) place.refuse("entries", "none");
    require_ascending(place, entries.positions);
    if (!entries.masses.empty()) place.require_size("masses", n, entries.masses.size());
    for (const float mass : entries.masses)
        if (!(mass > 0) || !std::isfinite(mass)) place.refuse("masses above 0", std::to_string(mass));
    if (entries.values.before_rope) place.refuse("only keys before RoPE", "values");
    for (const StoredVectors* vectors : {&entries.keys, &entries.values}) {
        if (vectors->parts.empty()) place.refuse("at least one part for keys and one for values", "none");
        if (!vectors->offset.empty())
            place.require_size("numbers in an offset", static_cast<size_t>(head_dim), vectors->offset.size());
        for (const StoredPart& part : vectors->parts) require_part(place, part, n, head_dim);
    }
}

/// Checks that every token lies in an existing entry and that each entry ends with the token at its position.
void require_tokens(const Place& place, const std::vector<int32_t>& token_entry, const std::vector<uint32_t>& kept) {
    const auto n = static_cast<int32_t>(kept.size());
    for (size_t token = 0; token < token_entry.size(); ++token) {
        const int32_t entry = token_entry[token];
        if (entry < -1 || entry >= n)
            place.refuse(fmt::format("an entry from -1 to {}", n - 1), fmt::format("{} for token {}", entry, token));
        if (entry >= 0 && token > kept[static_cast<size_t>(entry)])
            place.refuse(fmt::format("a token up to {} in entry {}", kept[static_cast<size_t>(entry)], entry),
                         std::to_string(token));
    }
    for (int32_t entry = 0; entry < n; ++entry) {
        const uint32_t position = kept[static_cast<size_t>(entry)];
        if (position >= token_entry.size() || token_entry[position] != entry)
            place.refuse(fmt::format("token {} in entry {}", position, entry), "another entry");
    }
}

size_t& kind_of(const StoredPart& part, StoredBytes& bytes) {
    return part.map ? bytes.mapped : part.channels.empty() ? bytes.whole : bytes.channels;
}

void add_bytes(const StoredVectors& vectors, size_t n_entries, size_t element, StoredBytes& bytes) {
    for (const StoredPart& part : vectors.parts) {
        const size_t own = part.block ? 0 : static_cast<size_t>(part.width);
        const size_t scales = part.scales.empty() ? 0 : 1;
        kind_of(part, bytes) += n_entries * (own + scales) * element + part.channels.size() * sizeof(uint16_t);
    }
}

void add_maps(const StoredVectors& vectors, std::set<const Matrix*>& maps) {
    for (const StoredPart& part : vectors.parts)
        if (part.map) maps.insert(part.map.get());
}

StoredBytes own_bytes_of(const StoredRow& row, int head_dim, size_t element) {
    StoredBytes bytes;
    bytes.whole = 2 * row.plain.size() * static_cast<size_t>(head_dim) * element;
    std::set<const Matrix*> maps;
    for (const StoredEntries& entries : row.stored) {
        add_bytes(entries.keys, entries.positions.size(), element, bytes);
        add_bytes(entries.values, entries.positions.size(), element, bytes);
        bytes.masses += entries.masses.size() * sizeof(float);
        add_maps(entries.keys, maps);
        add_maps(entries.values, maps);
    }
    for (const Matrix* map : maps) bytes.mapped += map->prompt_bytes();
    return bytes;
}

template <class Visit>
void for_each_vectors(const StoredLayer& layer, Visit visit) {
    for (const StoredRow& row : layer.rows)
        for (const StoredEntries& entries : row.stored) {
            visit(entries.keys);
            visit(entries.values);
        }
}

bool is_whole(const StoredVectors& vectors) {
    if (vectors.parts.size() != 1 || !vectors.offset.empty()) return false;
    const StoredPart& part = vectors.parts[0];
    return !part.map && part.channels.empty() && part.scales.empty();
}

struct BlockUse {
    std::set<int> whole_columns;  ///< first columns of whole keys or values, d columns each
    int n_users = 0;              ///< number of keys and values that are not whole

    /// Returns the number of columns without whole keys or values, divided evenly among the users.
    double width_of_user(const StoredBlock& block, int head_dim) const {
        return static_cast<double>(block.width - head_dim * static_cast<int>(whole_columns.size())) / n_users;
    }
};

struct Shared {
    StoredBytes bytes;
    std::map<const StoredBlock*, BlockUse> uses;
};

Shared shared_of(const StoredLayer& layer, size_t element) {
    Shared shared;
    std::map<const StoredBlock*, const StoredPart*> first;
    for_each_vectors(layer, [&](const StoredVectors& vectors) {
        std::set<const StoredBlock*> used;
        for (const StoredPart& part : vectors.parts)
            if (part.block) {
                used.insert(part.block.get());
                first.try_emplace(part.block.get(), &part);
            }
        for (const StoredBlock* block : used) {
            if (is_whole(vectors))
                shared.uses[block].whole_columns.insert(vectors.parts[0].first_column);
            else
                ++shared.uses[block].n_users;
        }
    });
    for (const auto& block : layer.blocks) {
        const auto part = first.find(block.get());
        (part == first.end() ? shared.bytes.mapped : kind_of(*part->second, shared.bytes)) +=
            block->numbers.size() * element;
    }
    return shared;
}

/// Returns the count of numbers per entry, including the entry's part of blocks that several heads read.
double width_of(const StoredVectors& vectors, const StoredLayer& layer, const Shared& shared, int head_dim) {
    double width = 0;
    std::set<const StoredBlock*> used;
    for (const StoredPart& part : vectors.parts) {
        if (!part.scales.empty()) ++width;
        if (!part.block)
            width += part.width;
        else
            used.insert(part.block.get());
    }
    for (const auto& block : layer.blocks)
        if (used.contains(block.get()))
            width += is_whole(vectors) ? head_dim : shared.uses.at(block.get()).width_of_user(*block, head_dim);
    return width;
}

void mark_dropped(const StoredVectors& keys, std::span<uint8_t> channels) {
    std::vector<uint8_t> found(channels.size(), 0);
    for (const StoredPart& part : keys.parts) {
        if (part.channels.empty()) return;
        for (const uint16_t channel : part.channels) found[channel] = 1;
    }
    for (size_t c = 0; c < channels.size(); ++c) channels[c] = channels[c] & found[c];
}

struct Entry {
    uint32_t position;
    float mass;
    uint8_t whole;
};

void summarize(const StoredLayer& layer, const StoredRow& row, const Shared& shared, int head_dim,
               StoredSummary& summary) {
    const auto d = static_cast<size_t>(head_dim);
    summary.key_channels.resize(summary.key_channels.size() + d, 1);
    const std::span<uint8_t> channels = std::span(summary.key_channels).last(d);
    double key_numbers = 0, value_numbers = 0;
    size_t n_stored = 0;
    std::vector<Entry> all;
    for (const StoredEntries& entries : row.stored) {
        const size_t n = entries.positions.size();
        mark_dropped(entries.keys, channels);
        const bool whole = is_whole(entries.keys) && is_whole(entries.values);
        for (size_t i = 0; i < n; ++i)
            all.push_back({entries.positions[i], entries.masses.empty() ? 1.0f : entries.masses[i], whole});
        if (whole) continue;
        n_stored += n;
        key_numbers += static_cast<double>(n) * width_of(entries.keys, layer, shared, head_dim);
        value_numbers += static_cast<double>(n) * width_of(entries.values, layer, shared, head_dim);
    }
    for (const uint32_t position : row.plain) all.push_back({position, 1.0f, 1});
    std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.position < b.position; });
    for (const Entry& entry : all) {
        summary.masses.push_back(entry.mass);
        summary.whole.push_back(entry.whole);
    }
    summary.n_entries.push_back(static_cast<uint32_t>(all.size()));
    summary.n_stored.push_back(static_cast<uint32_t>(n_stored));
    const auto mean = [&](double numbers) {
        return n_stored > 0 ? static_cast<float>(numbers / static_cast<double>(n_stored))
                            : static_cast<float>(head_dim);
    };
    summary.key_width.push_back(mean(key_numbers));
    summary.value_width.push_back(mean(value_numbers));
}

void add_tokens(const Place& place, const std::vector<int32_t>& token_entry, const std::vector<uint32_t>& kept,
                size_t n_tokens, StoredSummary& summary) {
    if (!token_entry.empty()) {
        place.require_size("entries of tokens", n_tokens, token_entry.size());
        summary.token_entry.insert(summary.token_entry.end(), token_entry.begin(), token_entry.end());
        summary.merges =
            summary.merges ||
            n_tokens - static_cast<size_t>(std::count(token_entry.begin(), token_entry.end(), -1)) != kept.size();
        return;
    }
    const size_t first = summary.token_entry.size();
    summary.token_entry.resize(first + n_tokens, -1);
    for (size_t i = 0; i < kept.size(); ++i) summary.token_entry[first + kept[i]] = static_cast<int32_t>(i);
}

}  // namespace

void require_valid_storage(std::string_view policy, int layer, const ModelShape& shape, const Selection& selection) {
    if (!selection.stored) return;
    const StoredLayer& stored = *selection.stored;
    Place place{policy, layer, 0};
    for (const auto& block : stored.blocks)
        if (!block || block->width < 1) place.refuse("blocks with at least one number per entry", "none");
    place.require_size("rows", selection.rows.size(), stored.rows.size());
    for (; place.row < stored.rows.size(); ++place.row) {
        const StoredRow& row = stored.rows[place.row];
        std::vector<uint32_t> positions;
        for (const StoredEntries& entries : row.stored) {
            require_entries(place, entries, shape.head_dim);
            positions.insert(positions.end(), entries.positions.begin(), entries.positions.end());
        }
        require_ascending(place, row.plain);
        positions.insert(positions.end(), row.plain.begin(), row.plain.end());
        const auto& kept = selection.rows[place.row];
        if (row.token_entry.empty()) std::sort(positions.begin(), positions.end());
        place.require_size("positions, as many as the selection has", kept.size(), positions.size());
        const auto [other, expected] = std::mismatch(positions.begin(), positions.end(), kept.begin());
        if (other != positions.end())
            place.refuse(fmt::format("position {} of the selection", *expected), std::to_string(*other));
        if (!row.token_entry.empty()) require_tokens(place, row.token_entry, kept);
    }
}

size_t row_share_of_layer_bytes(size_t bytes, size_t row, size_t n_rows) { return (bytes + n_rows - 1 - row) / n_rows; }

std::vector<size_t> row_bytes_of(const Selection& selection, int head_dim, size_t element) {
    const size_t n_rows = selection.rows.size();
    const size_t shared = selection.stored ? shared_of(*selection.stored, element).bytes.total() : 0;
    std::vector<size_t> bytes;
    for (size_t row = 0; row < n_rows; ++row)
        bytes.push_back(selection.stored ? own_bytes_of(selection.stored->rows[row], head_dim, element).total() +
                                               row_share_of_layer_bytes(shared, row, n_rows)
                                         : 2 * selection.rows[row].size() * static_cast<size_t>(head_dim) * element);
    return bytes;
}

StoredSummary summarize_storage(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                                const Selection& selection, size_t element) {
    StoredLayer whole;
    if (!selection.stored)
        for (const auto& row : selection.rows) whole.rows.push_back({.stored = {}, .plain = row, .token_entry = {}});
    const StoredLayer& stored = selection.stored ? *selection.stored : whole;
    const Shared shared = shared_of(stored, element);
    StoredSummary summary;
    summary.bytes = shared.bytes;
    Place place{policy, layer, 0};
    for (; place.row < selection.rows.size(); ++place.row) {
        const StoredRow& row = stored.rows[place.row];
        summarize(stored, row, shared, shape.head_dim, summary);
        add_tokens(place, row.token_entry, selection.rows[place.row], static_cast<size_t>(n_tokens), summary);
        const StoredBytes bytes = own_bytes_of(row, shape.head_dim, element);
        summary.bytes.whole += bytes.whole;
        summary.bytes.channels += bytes.channels;
        summary.bytes.mapped += bytes.mapped;
        summary.bytes.masses += bytes.masses;
    }
    const auto& channels = summary.key_channels;
    summary.drops_channels = std::find(channels.begin(), channels.end(), 0) != channels.end();
    summary.merges = summary.merges ||
                     std::any_of(summary.masses.begin(), summary.masses.end(), [](float mass) { return mass != 1.0f; });
    return summary;
}

}  // namespace kvscope::policies
