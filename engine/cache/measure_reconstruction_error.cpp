#include "engine/cache/measure_reconstruction_error.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kvscope::engine {
namespace {

constexpr int64_t tile_entries = 128;  // entries that are reconstructed together

class TokensByEntry {
 public:
    TokensByEntry(std::span<const int32_t> token_entry, size_t n_entries) : first_(n_entries + 1, 0) {
        for (const int32_t entry : token_entry)
            if (entry >= 0) ++first_[static_cast<size_t>(entry) + 1];
        for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
        tokens_.resize(first_.back());
        auto next = first_;
        for (size_t token = 0; token < token_entry.size(); ++token)
            if (token_entry[token] >= 0)
                tokens_[next[static_cast<size_t>(token_entry[token])]++] = static_cast<int64_t>(token);
    }
    std::span<const int64_t> of(size_t entry) const {
        return std::span(tokens_).subspan(first_[entry], first_[entry + 1] - first_[entry]);
    }

 private:
    std::vector<size_t> first_;
    std::vector<int64_t> tokens_;
};

/// Returns each entry's index in the order of positions. The result is in storage order.
std::vector<size_t> places_of(std::span<const std::shared_ptr<const StoredEntries>> stored,
                              std::span<const uint32_t> plain) {
    std::vector<uint32_t> positions;
    for (const auto& entries : stored)
        positions.insert(positions.end(), entries->positions().begin(), entries->positions().end());
    positions.insert(positions.end(), plain.begin(), plain.end());
    std::vector<uint32_t> sorted = positions;
    std::sort(sorted.begin(), sorted.end());
    std::vector<size_t> places;
    for (const uint32_t position : positions)
        places.push_back(
            static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), position) - sorted.begin()));
    return places;
}

struct Sums {
    double difference = 0;
    double whole = 0;

    void add(std::span<const float> found, float share, std::span<const float> own) {
        for (size_t c = 0; c < own.size(); ++c) {
            const double d = double{found[c]} * share - own[c];
            difference += d * d;
            whole += double{own[c]} * own[c];
        }
    }
    float ratio() const {
        if (difference == 0) return 0;
        return whole > 0 ? static_cast<float>(std::sqrt(difference / whole)) : 1.0f;
    }
};

}  // namespace

StorageError measure_storage_error(const RunCache& cache, int layer, int row, std::span<const int32_t> token_entry,
                                   const policies::EntriesView& keys, const policies::EntriesView& values, int head,
                                   int head_dim) {
    const auto d = static_cast<size_t>(head_dim);
    const auto stored = cache.stored(layer, row);
    const TokensByEntry tokens(token_entry, static_cast<size_t>(cache.n_entries(layer, row)));
    Sums of_keys, of_values;
    std::vector<float> tile_keys(tile_entries * d), tile_values(tile_entries * d), own(d);
    const auto add = [&](const policies::EntriesView& view, int64_t token, std::span<const float> found, float share,
                         Sums& sums) {
        policies::read_entry(view, head, token, head_dim, own.data());
        sums.add(found.empty() ? own : found, found.empty() ? 1.0f : share, own);
    };
    const std::vector<size_t> places = places_of(stored, cache.positions(layer, row));
    size_t next = 0;
    for (const auto& entries : stored) {
        for (int64_t begin = 0; begin < entries->size(); begin += tile_entries) {
            const int64_t end = std::min(begin + tile_entries, entries->size());
            entries->read(begin, end, tile_keys.data(), tile_values.data());
            for (int64_t i = begin; i < end; ++i) {
                const size_t at = static_cast<size_t>(i - begin) * d;
                for (const int64_t token : tokens.of(places[next++])) {
                    add(keys, token, std::span(tile_keys).subspan(at, d), 1.0f, of_keys);
                    add(values, token, std::span(tile_values).subspan(at, d), 1.0f / entries->mass(i), of_values);
                }
            }
        }
    }
    for (; next < places.size(); ++next)
        for (const int64_t token : tokens.of(places[next])) {
            add(keys, token, {}, 1.0f, of_keys);
            add(values, token, {}, 1.0f, of_values);
        }
    return {of_keys.ratio(), of_values.ratio()};
}

}  // namespace kvscope::engine
