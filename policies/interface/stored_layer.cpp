#include "policies/interface/stored_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

size_t bytes_of(const StoredVectors& vectors, size_t n_entries, size_t element) {
    size_t total = 0;
    for (const StoredPart& part : vectors.parts)
        total += n_entries * static_cast<size_t>(part.width) * element + part.channels.size() * sizeof(uint16_t);
    return total;
}

}  // namespace

void require_stored(std::string_view policy, int layer, const ModelShape& shape, const Selection& selection,
                    const StoredLayer& stored) {
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
    }
}

size_t bytes_of(const StoredRow& row, int head_dim, size_t element) {
    size_t total = 2 * row.plain.size() * static_cast<size_t>(head_dim) * element;
    for (const StoredEntries& entries : row.stored)
        total += bytes_of(entries.keys, entries.positions.size(), element) +
                 bytes_of(entries.values, entries.positions.size(), element) + entries.masses.size() * sizeof(float);
    return total;
}

}  // namespace kvscope::policies
