#pragma once

#include <algorithm>

#include "policies/api/stored_layer.h"

namespace kvscope::policies {

/// Writes a run's storage into a trace::RunRecord. The type is a parameter, because policies may not use traces.
template <class RunRecord>
class StorageRecorder {
 public:
    void add_layer(const StoredSummary& summary, RunRecord& record) {
        drops_channels_ = drops_channels_ || summary.drops_channels;
        merges_ = merges_ || summary.merges;
        append(record.channels_kept, summary.key_channels);
        append(record.merged_token_entry, summary.token_entry);
        append(record.merged_cardinality, summary.masses);
        append(record.stored_entries, summary.n_stored);
        append(record.stored_is_whole, summary.whole);
        parts_come_first_ = parts_come_first_ && come_first(summary);
        append(record.stored_key_width, summary.key_width);
        append(record.stored_value_width, summary.value_width);
        record.stored_whole_bytes.push_back(summary.bytes.whole);
        record.stored_channel_bytes.push_back(summary.bytes.channels);
        record.stored_mapped_bytes.push_back(summary.bytes.mapped);
        record.stored_mass_bytes.push_back(summary.bytes.masses);
    }

    void finish(RunRecord& record) const {
        if (!drops_channels_) free(record.channels_kept);
        if (!merges_) {
            free(record.merged_token_entry);
            free(record.merged_cardinality);
        }
        if (parts_come_first_) free(record.stored_is_whole);
        for (auto* bytes : {&record.stored_channel_bytes, &record.stored_mapped_bytes, &record.stored_mass_bytes})
            if (std::all_of(bytes->begin(), bytes->end(), [](auto count) { return count == 0; })) bytes->clear();
    }

 private:
    [[nodiscard]] static bool come_first(const StoredSummary& summary) {
        const size_t n_rows = summary.n_stored.size();
        size_t first = 0;
        for (size_t row = 0; row < n_rows; ++row) {
            const auto begin = summary.whole.begin() + static_cast<std::ptrdiff_t>(first);
            const auto in_parts = begin + static_cast<std::ptrdiff_t>(summary.n_stored[row]);
            if (std::find(begin, in_parts, 1) != in_parts) return false;
            first += summary.n_entries[row];
        }
        return true;
    }

    template <class Numbers>
    static void free(Numbers& numbers) {
        Numbers().swap(numbers);
    }

    template <class To, class From>
    static void append(To& to, const From& from) {
        to.insert(to.end(), from.begin(), from.end());
    }

    bool parts_come_first_ = true;
    bool drops_channels_ = false;
    bool merges_ = false;
};

}  // namespace kvscope::policies
