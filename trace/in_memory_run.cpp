#include "trace/in_memory_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trace/hdf5/hdf5.h"
#include "trace/records/record_fields.h"
#include "trace/store_records.h"

namespace kvscope::trace {

namespace {

/// Returns the elements of a block of `values` in row-major order. `shape` is the shape of `values`.
template <class T, class From>
std::vector<T> cut(const std::vector<From>& values, const std::vector<std::size_t>& shape, const Block& block) {
    std::size_t count = 1;
    for (const std::size_t extent : block.count) count *= extent;
    std::vector<T> out;
    out.reserve(count);
    std::vector<std::size_t> at(shape.size(), 0);  // index within the block; the last dimension is copied as a whole
    while (out.size() < count) {
        std::size_t begin = 0;
        for (std::size_t i = 0; i < shape.size(); ++i) begin = begin * shape[i] + block.first[i] + at[i];
        const auto from = values.begin() + static_cast<std::ptrdiff_t>(begin);
        std::transform(from, from + static_cast<std::ptrdiff_t>(block.count.back()), std::back_inserter(out),
                       [](From value) { return static_cast<T>(value); });
        for (std::size_t i = shape.size() - 1; i-- > 0;) {
            if (++at[i] < block.count[i]) break;
            at[i] = 0;
        }
    }
    return out;
}

}  // namespace

InMemoryRun::InMemoryRun(RunRecord record, const ModelAttributes& model, const PromptAttributes& prompt)
    : name_(fmt::format("run \"{}\" (only in memory)", record.label)),
      record_(std::move(record)),
      extents_(model, prompt, record_) {
    require_storable_run(name_, record_, model, prompt);
    if (record_.kept_offsets.empty()) return;
    Kept kept{static_cast<std::size_t>(model.n_layers), extents_.rows(), std::exchange(record_.kept_offsets, {}),
              std::exchange(record_.kept_indices, {})};
    kept.token_entry = record_.merged_token_entry;
    kept.cardinality = record_.merged_cardinality;
    kept.stored_entries = record_.stored_entries;
    kept.is_whole = record_.stored_is_whole;
    kept.key_error = record_.stored_key_error;
    kept.value_error = record_.stored_value_error;
    if (kept.merges()) kept.find_held_tokens();
    kept_ = std::make_shared<const Kept>(std::move(kept));
}

template <class Action>
bool InMemoryRun::visit(const schema::DataSet& data_set, Action action) const {
    if (data_set.path == schema::run::kept_offsets.path || data_set.path == schema::run::kept_indices.path) {
        if (!kept_) return false;
        if (data_set.path == schema::run::kept_offsets.path) {
            action(kept_->offsets);
        } else {
            action(kept_->indices);
        }
        return true;
    }
    bool found = false;
    for_each_run_data_set(record_, [&](const schema::DataSet& member, const auto& values) {
        if (member.path != data_set.path || values.empty()) return;
        found = true;
        action(values);
    });
    return found;
}

void InMemoryRun::missing(const schema::DataSet& data_set) const {
    throw DamagedTrace(fmt::format("{}/{}: the data set is missing", name_, data_set.path));
}

bool InMemoryRun::has(const schema::DataSet& data_set) const {
    return visit(data_set, [](const auto&) {});
}

std::vector<std::size_t> InMemoryRun::shape(const schema::DataSet& data_set) const {
    std::vector<std::size_t> out;
    if (!visit(data_set, [&](const auto& values) { out = extents_.shape(data_set, values.size()); })) {
        missing(data_set);
    }
    return out;
}

template <class T>
std::vector<T> InMemoryRun::read(const schema::DataSet& data_set, const Block* block) const {
    std::vector<T> out;
    const bool found = visit(data_set, [&](const auto& values) {
        using From = typename std::remove_cvref_t<decltype(values)>::value_type;
        const std::vector<std::size_t> whole = extents_.shape(data_set, values.size());
        if (block != nullptr) {
            h5::require_block_inside(*block, whole);
            out = cut<T>(values, whole, *block);
        } else if constexpr (std::is_same_v<T, From>) {
            out = values;
        } else {
            out = cut<T>(values, {values.size()}, Block{{0}, {values.size()}});
        }
    });
    if (!found) missing(data_set);
    return out;
}
template std::vector<float> InMemoryRun::read(const schema::DataSet&, const Block*) const;
template std::vector<double> InMemoryRun::read(const schema::DataSet&, const Block*) const;
template std::vector<std::int32_t> InMemoryRun::read(const schema::DataSet&, const Block*) const;
template std::vector<std::uint8_t> InMemoryRun::read(const schema::DataSet&, const Block*) const;
template std::vector<std::uint16_t> InMemoryRun::read(const schema::DataSet&, const Block*) const;
template std::vector<std::uint32_t> InMemoryRun::read(const schema::DataSet&, const Block*) const;
template std::vector<std::uint64_t> InMemoryRun::read(const schema::DataSet&, const Block*) const;

std::shared_ptr<const Kept> InMemoryRun::kept() const {
    if (!kept_) missing(schema::run::kept_offsets);
    return kept_;
}

RunRecord InMemoryRun::record() const {
    RunRecord out = record_;
    if (kept_) {
        out.kept_offsets = kept_->offsets;
        out.kept_indices = kept_->indices;
    }
    return out;
}

}  // namespace kvscope::trace
