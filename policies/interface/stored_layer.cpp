#include "policies/interface/stored_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "policies/interface/errors.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {
namespace {

/// Where in what a policy stores something is; it throws what is wrong there.
struct Place {
    std::string_view policy;
    int layer;
    size_t row;
    [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
        throw SelectionError(fmt::format("what {} stores of layer {}, row {}: expected {}, found {}", policy, layer,
                                         row, expected, found));
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
                         fmt::format("{} behind {}", channels[i], channels[i - 1]));
    }
}

void require_part(const Place& place, const StoredPart& part, size_t n, int head_dim) {
    if (part.width < 1) place.refuse("parts of at least one number", std::to_string(part.width));
    const auto width = static_cast<size_t>(part.width);
    if (!part.numbers.empty()) place.require_size("numbers of a part", n * width, part.numbers.size());
    require_channels(place, part.channels, head_dim);
    if (part.map) {
        if (part.numbers.empty()) place.refuse("numbers beside a map", "none");
        place.require_size("rows of a map", width, static_cast<size_t>(part.map->n_rows));
        place.require_size("columns of a map", static_cast<size_t>(head_dim), static_cast<size_t>(part.map->n_columns));
        place.require_size("numbers of a map", static_cast<size_t>(head_dim) * width, part.map->numbers.size());
        place.require_size("channels beside a map", 0, part.channels.size());
    } else {
        const size_t n_channels = part.channels.empty() ? static_cast<size_t>(head_dim) : part.channels.size();
        place.require_size("numbers an entry, one for each channel", n_channels, width);
    }
}

void require_entries(const Place& place, const StoredEntries& entries, int head_dim) {
    const size_t n = entries.positions.size();
    if (n == 0) place.refuse("entries", "none");
    if (!entries.masses.empty()) place.require_size("masses", n, entries.masses.size());
    for (const float mass : entries.masses)
        if (!(mass > 0) || !std::isfinite(mass)) place.refuse("masses above 0", std::to_string(mass));
    for (const StoredVectors* vectors : {&entries.keys, &entries.values}) {
        if (vectors->parts.empty()) place.refuse("keys and values of at least one part", "none");
        for (const StoredPart& part : vectors->parts) require_part(place, part, n, head_dim);
    }
}

/// The tokens are the selection's, and each entry has at least the one at its position, none behind it.
void require_tokens(const Place& place, const std::vector<int32_t>& token_entry, const std::vector<uint32_t>& kept) {
    const auto n = static_cast<int32_t>(kept.size());
    for (size_t token = 0; token < token_entry.size(); ++token) {
        const int32_t entry = token_entry[token];
        if (entry < -1 || entry >= n)
            place.refuse(fmt::format("entries from -1 to {}", n - 1), fmt::format("{} for token {}", entry, token));
        if (entry >= 0 && token > kept[static_cast<size_t>(entry)])
            place.refuse(fmt::format("tokens up to {} in entry {}", kept[static_cast<size_t>(entry)], entry),
                         std::to_string(token));
    }
    for (int32_t entry = 0; entry < n; ++entry) {
        const uint32_t position = kept[static_cast<size_t>(entry)];
        if (position >= token_entry.size() || token_entry[position] != entry)
            place.refuse(fmt::format("token {} in entry {}, where it is", position, entry), "another");
    }
}

void add_bytes(const StoredVectors& vectors, size_t n_entries, size_t element, StoredBytes& bytes) {
    for (const StoredPart& part : vectors.parts) {
        const size_t numbers = n_entries * static_cast<size_t>(part.width) * element;
        size_t& kind = part.map ? bytes.mapped : part.channels.empty() ? bytes.whole : bytes.channels;
        kind += numbers + part.channels.size() * sizeof(uint16_t);
    }
}

float width_of(const StoredVectors& vectors) {
    int width = 0;
    for (const StoredPart& part : vectors.parts) width += part.width;
    return static_cast<float>(width);
}

/// Marks the channels that no part of the keys has.
void mark_dropped(const StoredVectors& keys, std::span<uint8_t> channels) {
    std::vector<uint8_t> found(channels.size(), 0);
    for (const StoredPart& part : keys.parts) {
        if (part.channels.empty()) return;
        for (const uint16_t channel : part.channels) found[channel] = 1;
    }
    for (size_t c = 0; c < channels.size(); ++c) channels[c] = channels[c] & found[c];
}

bool is_whole(const StoredVectors& vectors) {
    return vectors.parts.size() == 1 && !vectors.parts[0].map && vectors.parts[0].channels.empty();
}

/// Adds a row of the summary.
void summarize(const StoredRow& row, int head_dim, StoredSummary& summary) {
    const auto d = static_cast<size_t>(head_dim);
    summary.key_channels.resize(summary.key_channels.size() + d, 1);
    const std::span<uint8_t> channels = std::span(summary.key_channels).last(d);
    double key_numbers = 0, value_numbers = 0, all_keys = 0, all_values = 0;
    size_t n_stored = 0, n_all = 0;  // as far as the last entries that are not whole
    for (const StoredEntries& entries : row.stored) {
        const size_t n = entries.positions.size();
        mark_dropped(entries.keys, channels);
        all_keys += static_cast<double>(n) * static_cast<double>(width_of(entries.keys));
        all_values += static_cast<double>(n) * static_cast<double>(width_of(entries.values));
        n_all += n;
        if (!is_whole(entries.keys) || !is_whole(entries.values)) {
            n_stored = n_all;
            key_numbers = all_keys;
            value_numbers = all_values;
        }
        summary.masses.insert(summary.masses.end(), entries.masses.begin(), entries.masses.end());
        if (entries.masses.empty()) summary.masses.resize(summary.masses.size() + n, 1.0f);
    }
    summary.masses.resize(summary.masses.size() + row.plain.size(), 1.0f);
    summary.n_stored.push_back(static_cast<uint32_t>(n_stored));
    const auto mean = [&](double numbers) {
        return n_stored > 0 ? static_cast<float>(numbers / static_cast<double>(n_stored))
                            : static_cast<float>(head_dim);
    };
    summary.key_width.push_back(mean(key_numbers));
    summary.value_width.push_back(mean(value_numbers));
}

/// Adds the entries of a row's tokens.
void add_tokens(const Place& place, const std::vector<int32_t>& token_entry, const std::vector<uint32_t>& kept,
                size_t n_tokens, StoredSummary& summary) {
    if (!token_entry.empty()) {
        place.require_size("tokens with their entries", n_tokens, token_entry.size());
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

void require_stored(std::string_view policy, int layer, const ModelShape& shape, const Selection& selection) {
    if (!selection.stored) return;
    const StoredLayer& stored = *selection.stored;
    Place place{policy, layer, 0};
    place.require_size("rows", selection.rows.size(), stored.rows.size());
    for (; place.row < stored.rows.size(); ++place.row) {
        const StoredRow& row = stored.rows[place.row];
        std::vector<uint32_t> positions;
        for (const StoredEntries& entries : row.stored) {
            require_entries(place, entries, shape.head_dim);
            positions.insert(positions.end(), entries.positions.begin(), entries.positions.end());
        }
        positions.insert(positions.end(), row.plain.begin(), row.plain.end());
        const auto& kept = selection.rows[place.row];
        place.require_size("positions, as the selection has", kept.size(), positions.size());
        const auto [other, expected] = std::mismatch(positions.begin(), positions.end(), kept.begin());
        if (other != positions.end())
            place.refuse(fmt::format("the selection's position {}", *expected), std::to_string(*other));
        if (!row.token_entry.empty()) require_tokens(place, row.token_entry, kept);
    }
}

StoredBytes bytes_of(const StoredRow& row, int head_dim, size_t element) {
    StoredBytes bytes;
    bytes.whole = 2 * row.plain.size() * static_cast<size_t>(head_dim) * element;
    for (const StoredEntries& entries : row.stored) {
        add_bytes(entries.keys, entries.positions.size(), element, bytes);
        add_bytes(entries.values, entries.positions.size(), element, bytes);
        bytes.masses += entries.masses.size() * sizeof(float);
    }
    return bytes;
}

std::vector<size_t> row_bytes_of(const Selection& selection, int head_dim, size_t element) {
    std::vector<size_t> bytes;
    for (size_t row = 0; row < selection.rows.size(); ++row)
        bytes.push_back(selection.stored ? bytes_of(selection.stored->rows[row], head_dim, element).total()
                                         : 2 * selection.rows[row].size() * static_cast<size_t>(head_dim) * element);
    return bytes;
}

StoredSummary summary_of(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                         const Selection& selection, size_t element) {
    const auto& stored = selection.stored;
    StoredSummary summary;
    Place place{policy, layer, 0};
    for (; place.row < selection.rows.size(); ++place.row) {
        const auto& kept = selection.rows[place.row];
        const StoredRow whole{.stored = {}, .plain = stored ? std::vector<uint32_t>{} : kept, .token_entry = {}};
        const StoredRow& row = stored ? stored->rows[place.row] : whole;
        summarize(row, shape.head_dim, summary);
        add_tokens(place, row.token_entry, kept, static_cast<size_t>(n_tokens), summary);
        const StoredBytes bytes = bytes_of(row, shape.head_dim, element);
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
