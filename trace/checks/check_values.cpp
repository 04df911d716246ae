#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>

#include "trace/checks/problem_list.h"
#include "trace/hdf5/hdf5.h"

namespace kvscope::trace {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double slack = 1e-3;  ///< tolerance for rounding errors in sums of f32

class Values {
 public:
    Values(hid_t file, std::string group, const Sound& sound, Problems& problems)
        : file_(file), group_(std::move(group)), sound_(sound), problems_(problems) {}

    [[nodiscard]] bool sound(const schema::DataSet& data_set) const { return sound_.contains(&data_set); }
    [[nodiscard]] std::string path(const schema::DataSet& data_set) const {
        return fmt::format("{}/{}", group_, data_set.path);
    }
    void error(const schema::DataSet& data_set, std::string expected, std::string found) const {
        problems_.error(path(data_set), std::move(expected), std::move(found));
    }
    void attribute_error(std::string_view name, std::string expected, std::string found) const {
        problems_.error(fmt::format("{}@{}", group_, name), std::move(expected), std::move(found));
    }
    void warning(const schema::DataSet& data_set, std::string expected, std::string found) const {
        problems_.warning(path(data_set), std::move(expected), std::move(found));
    }

    template <class T>
    std::vector<T> read(const schema::DataSet& data_set) const {
        std::vector<T> out;
        if (!sound(data_set)) return out;
        guarded(data_set, [&] { out = h5::read_data_set<T>(h5::open_data_set(file_, path(data_set)).get()); });
        return out;
    }

    /// Calls `look` for each layer until `look` returns false. Several small layers are read at once.
    template <class T>
    void each_layer(const schema::DataSet& data_set,
                    const std::function<bool(std::size_t, std::span<const T>)>& look) const {
        constexpr std::size_t together = 1 << 18;  // values per read
        if (!sound(data_set)) return;
        guarded(data_set, [&] {
            const h5::Handle open = h5::open_data_set(file_, path(data_set));
            Block block;
            block.count = h5::data_set_info(open.get()).shape;
            block.first.assign(block.count.size(), 0);
            const std::size_t layers = block.count[0];
            const std::size_t size =
                std::accumulate(block.count.begin() + 1, block.count.end(), std::size_t{1}, std::multiplies<>());
            const std::size_t step = std::max(std::size_t{1}, together / std::max(std::size_t{1}, size));
            for (block.first[0] = 0; block.first[0] < layers; block.first[0] += step) {
                block.count[0] = std::min(step, layers - block.first[0]);
                const std::vector<T> values = h5::read_data_set<T>(open.get(), &block);
                for (std::size_t i = 0; i < block.count[0]; ++i)
                    if (!look(block.first[0] + i, std::span(values).subspan(i * size, size))) return;
            }
        });
    }

    void range(const schema::DataSet& data_set, double low, double high, bool nan_allowed = false) const {
        each_layer<double>(data_set, [&](std::size_t layer, std::span<const double> values) {
            const auto bad = std::find_if(values.begin(), values.end(), [&](double value) {
                return std::isnan(value) ? !nan_allowed : value < low || value > high;
            });
            if (bad == values.end()) return true;
            error(data_set,
                  low == -infinity ? "finite numbers" : fmt::format("values from {:.4g} to {:.4g}", low, high),
                  fmt::format("{} at [{}], element {}", *bad, layer, bad - values.begin()));
            return false;
        });
    }

    template <class T>
    void integer_range(const schema::DataSet& data_set, std::int64_t low, std::int64_t high) const {
        each_layer<T>(data_set, [&](std::size_t layer, std::span<const T> values) {
            const auto bad = std::find_if(values.begin(), values.end(), [&](T value) {
                return static_cast<std::int64_t>(value) < low || static_cast<std::int64_t>(value) > high;
            });
            if (bad == values.end()) return true;
            error(data_set, fmt::format("values from {} to {}", low, high),
                  fmt::format("{} at [{}], element {}", +*bad, layer, bad - values.begin()));
            return false;
        });
    }

    void divergences(const schema::DataSet& data_set, std::size_t rows) const {
        range(data_set, -slack, std::numbers::ln2 + slack);
        each_layer<float>(data_set, [&](std::size_t layer, std::span<const float> values) {
            for (std::size_t a = 0; a < rows; ++a) {
                for (std::size_t b = 0; b <= a; ++b) {
                    const float ab = values[a * rows + b];
                    const float ba = values[b * rows + a];
                    if (std::abs(ab - ba) > 1e-4F || (a == b && std::abs(ab) > 1e-4F)) {
                        error(
                            data_set, "symmetric matrices with zeros on the diagonal",
                            fmt::format("{} at [{}, {}, {}] and {} at [{}, {}, {}]", ab, layer, a, b, ba, layer, b, a));
                        return false;
                    }
                }
            }
            return true;
        });
    }

 private:
    template <class Action>
    void guarded(const schema::DataSet& data_set, Action action) const {
        try {
            action();
        } catch (const h5::Failure& failure) {
            error(data_set, "readable data", failure.what());
        }
    }

    hid_t file_;
    std::string group_;
    const Sound& sound_;
    Problems& problems_;
};

void check_descending(const Values& values, const schema::DataSet& data_set, std::size_t length) {
    values.range(data_set, -slack, infinity);
    values.each_layer<float>(data_set, [&](std::size_t layer, std::span<const float> all) {
        for (std::size_t i = 1; i < all.size(); ++i) {
            if (i % length != 0 && all[i] > all[i - 1] * (1 + 1e-5F) + 1e-5F) {
                values.error(
                    data_set, "descending values",
                    fmt::format("{} comes directly after {} at [{}], element {}", all[i], all[i - 1], layer, i));
                return false;
            }
        }
        return true;
    });
}

void check_attention_sums(const Values& values, const schema::DataSet& data_set, std::size_t tokens) {
    values.each_layer<float>(data_set, [&](std::size_t layer, std::span<const float> all) {
        for (std::size_t head = 0; (head + 1) * tokens <= all.size(); ++head) {
            const auto begin = all.begin() + static_cast<std::ptrdiff_t>(head * tokens);
            const double sum = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(tokens), 0.0);
            if (std::abs(sum - 1) > 0.01) {
                values.error(data_set, "rows that sum to 1", fmt::format("{:.5g} at [{}, {}]", sum, layer, head));
                return false;
            }
        }
        return true;
    });
}

/// Checks that contributions of modes are in [-1, 1] and, averaged over heads, sum to the layer's adjacent similarity.
void check_modes(const Values& values, const schema::DataSet& modes, const schema::DataSet& similarity,
                 std::size_t heads) {
    values.range(modes, -1 - slack, 1 + slack);
    const auto expected = values.read<float>(similarity);
    values.each_layer<float>(modes, [&](std::size_t layer, std::span<const float> all) {
        const double mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(heads);
        if (layer >= expected.size() || !(std::abs(mean - double{expected[layer]}) > slack)) return true;
        values.error(modes,
                     fmt::format("contributions that sum to {:.5g}, the value in {}", expected[layer], similarity.path),
                     fmt::format("{:.5g} at [{}], averaged over heads", mean, layer));
        return false;
    });
}

void check_cosines(const Values& values, const schema::DataSet& data_set, std::size_t rows) {
    values.range(data_set, -1 - slack, 1 + slack);
    const auto all = values.read<float>(data_set);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t matrix = i / (rows * rows), a = i / rows % rows, b = i % rows;
        const float other = all[(matrix * rows + b) * rows + a];
        if (!(std::abs(all[i] - other) > 1e-4F)) continue;
        values.error(
            data_set, "symmetric matrices",
            fmt::format("{} and {} at elements [{}, {}] and [{}, {}] of matrix {}", all[i], other, a, b, b, a, matrix));
        return;
    }
}

struct KeptRows {
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> indices;
};

std::optional<KeptRows> check_kept(const Values& values, std::size_t tokens) {
    const auto& offsets_set = schema::run::kept_offsets;
    const auto& indices_set = schema::run::kept_indices;
    if (!values.sound(offsets_set) || !values.sound(indices_set)) return std::nullopt;
    KeptRows kept{values.read<std::uint64_t>(offsets_set), values.read<std::uint32_t>(indices_set)};
    if (kept.offsets.empty()) return std::nullopt;
    if (kept.offsets.front() != 0) {
        values.error(offsets_set, "the first value 0", std::to_string(kept.offsets.front()));
        return std::nullopt;
    }
    const auto drop = std::is_sorted_until(kept.offsets.begin(), kept.offsets.end());
    if (drop != kept.offsets.end()) {
        values.error(
            offsets_set, "values that never decrease",
            fmt::format("{} comes directly after {} at [{}]", *drop, *(drop - 1), drop - kept.offsets.begin()));
        return std::nullopt;
    }
    if (kept.offsets.back() != kept.indices.size()) {
        values.error(offsets_set, fmt::format("the last value {}, the length of kept_indices", kept.indices.size()),
                     std::to_string(kept.offsets.back()));
        return std::nullopt;
    }
    for (std::size_t row = 0; row + 1 < kept.offsets.size(); ++row) {
        for (std::uint64_t i = kept.offsets[row]; i < kept.offsets[row + 1]; ++i) {
            if (kept.indices[i] >= tokens) {
                values.error(indices_set, fmt::format("positions below {}", tokens),
                             fmt::format("{} at [{}], in row {}", kept.indices[i], i, row));
                return std::nullopt;
            }
            if (i > kept.offsets[row] && kept.indices[i] <= kept.indices[i - 1]) {
                values.error(indices_set, "ascending positions in each row",
                             fmt::format("{} comes directly after {} at [{}], in row {}", kept.indices[i],
                                         kept.indices[i - 1], i, row));
                return std::nullopt;
            }
        }
    }
    return kept;
}

/// Checks only the run's total, because some policies move entries between layers or heads (PyramidKV, Ada-SnapKV).
void check_budget(const Values& values, const KeptRows& kept, const PromptAttributes& prompt,
                  const RunAttributes& run) {
    if (run.budget_of && (*run.budget_of != schema::run::budget_of_bytes || run.is_full())) {
        values.attribute_error("budget_of", "bytes, for a policy other than full", *run.budget_of);
        return;
    }
    if (run.budget_of && !(run.budget_fraction > 0 && run.budget_fraction <= 1)) {
        values.attribute_error("budget_fraction", "a share above 0 and at most 1", std::to_string(run.budget_fraction));
        return;
    }
    const std::size_t rows = kept.offsets.size() - 1;
    const auto tokens = static_cast<std::uint64_t>(prompt.visible_tokens());
    if (run.is_full()) {
        if (kept.indices.size() != rows * tokens) {
            values.error(schema::run::kept_offsets, fmt::format("all {} positions in each of {} rows", tokens, rows),
                         fmt::format("{} entries in total", kept.indices.size()));
        }
        return;
    }
    // Policies that drop channels or numbers instead of entries keep every position.
    const bool keeps_all = kept.indices.size() == rows * tokens;
    if (run.budget_of == schema::run::budget_of_bytes && !keeps_all) {
        values.warning(
            schema::run::kept_offsets,
            fmt::format("all {} positions in each of {} rows, because the budget counts bytes", tokens, rows),
            fmt::format("{} entries in total", kept.indices.size()));
    }
    const std::uint64_t allowed =
        rows * std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(0, run.budget)), tokens);
    // A policy that merges chunk by chunk may leave the last chunk unmerged.
    const bool merges = values.sound(schema::run::merged_token_entry);
    if (kept.indices.size() > allowed && !keeps_all && !merges) {
        values.warning(schema::run::kept_offsets,
                       fmt::format("at most {} entries, {} for each of {} rows", allowed, run.budget, rows),
                       std::to_string(kept.indices.size()));
    }
}

void check_cardinality(const Values& values, const KeptRows& kept, std::size_t rows, std::size_t tokens) {
    const auto& cardinality_set = schema::run::merged_cardinality;
    const auto cardinality = values.read<float>(cardinality_set);
    if (cardinality.size() != kept.indices.size()) return;  // the shape check reports the difference
    std::vector<double> most(cardinality.size(), static_cast<double>(tokens));
    values.each_layer<std::int32_t>(schema::run::merged_token_entry, [&](std::size_t layer,
                                                                         std::span<const std::int32_t> entries) {
        for (std::size_t row = 0; row < rows; ++row) {
            const std::uint64_t first = kept.offsets[layer * rows + row], end = kept.offsets[layer * rows + row + 1];
            std::fill(most.begin() + static_cast<std::ptrdiff_t>(first),
                      most.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
            for (const std::int32_t entry : entries.subspan(row * tokens, tokens))
                if (entry >= 0 && static_cast<std::uint64_t>(entry) < end - first)
                    most[first + static_cast<std::uint64_t>(entry)] += 1;
        }
        return true;
    });
    for (std::size_t i = 0; i < cardinality.size(); ++i) {
        if (cardinality[i] > 0 && double{cardinality[i]} <= most[i] + slack) continue;
        values.error(cardinality_set,
                     fmt::format("a number above 0 and at most {}, the entry's number of tokens", most[i]),
                     fmt::format("{} at [{}]", cardinality[i], i));
        return;
    }
}

void check_merged(const Values& values, const KeptRows& kept, std::size_t rows, std::size_t tokens) {
    const auto& entry_set = schema::run::merged_token_entry;
    if (values.sound(entry_set)) {
        values.each_layer<std::int32_t>(entry_set, [&](std::size_t layer, std::span<const std::int32_t> entries) {
            for (std::size_t row = 0; row < rows; ++row) {
                const std::size_t at = layer * rows + row;
                const auto count = static_cast<std::int64_t>(kept.offsets[at + 1] - kept.offsets[at]);
                for (std::size_t i = 0; i < tokens; ++i) {
                    const std::int32_t entry = entries[row * tokens + i];
                    if (entry < -1 || entry >= count) {
                        values.error(entry_set,
                                     fmt::format("-1 or an entry below {}, the number of entries in the row", count),
                                     fmt::format("{} at [{}, {}, {}]", entry, layer, row, i));
                        return false;
                    }
                }
                for (std::int64_t i = 0; i < count; ++i) {
                    const std::uint32_t last = kept.indices[kept.offsets[at] + static_cast<std::uint64_t>(i)];
                    if (entries[row * tokens + last] == i) continue;
                    values.error(entry_set, fmt::format("token {} in entry {}, which has the same position", last, i),
                                 fmt::format("{} at [{}, {}, {}]", entries[row * tokens + last], layer, row, last));
                    return false;
                }
            }
            return true;
        });
    }
    check_cardinality(values, kept, rows, tokens);
}

void check_merged_keys(const Values& values) {
    const auto made = values.read<std::uint64_t>(schema::run::merged_keys);
    const auto outside = values.read<std::uint64_t>(schema::run::merged_keys_outside);
    for (std::size_t layer = 0; layer < std::min(made.size(), outside.size()); ++layer) {
        if (outside[layer] <= made[layer]) continue;
        values.error(schema::run::merged_keys_outside,
                     fmt::format("at most {}, the number of keys made by merging in layer {}", made[layer], layer),
                     std::to_string(outside[layer]));
        return;
    }
}

void check_stored(const Values& values, const KeptRows& kept) {
    const auto entries = values.read<std::uint32_t>(schema::run::stored_entries);
    for (std::size_t row = 0; row < std::min(entries.size(), kept.offsets.size() - 1); ++row) {
        const std::uint64_t count = kept.offsets[row + 1] - kept.offsets[row];
        if (entries[row] > count) {
            values.error(schema::run::stored_entries,
                         fmt::format("at most {}, the number of entries in row {}", count, row),
                         std::to_string(entries[row]));
            return;
        }
    }
    const auto is_whole = values.read<std::uint8_t>(schema::run::stored_is_whole);
    if (is_whole.empty() || is_whole.size() != kept.offsets.back()) return;
    for (std::size_t row = 0; row < std::min(entries.size(), kept.offsets.size() - 1); ++row) {
        const auto first = is_whole.begin() + static_cast<std::ptrdiff_t>(kept.offsets[row]);
        const auto last = is_whole.begin() + static_cast<std::ptrdiff_t>(kept.offsets[row + 1]);
        const auto in_parts = static_cast<std::uint32_t>(std::count(first, last, 0));
        if (in_parts == entries[row]) continue;
        values.error(
            schema::run::stored_is_whole,
            fmt::format("{} zeros in row {}, the number in {}", entries[row], row, schema::run::stored_entries.path),
            std::to_string(in_parts));
        return;
    }
}

void check_whole_bytes(const Values& values, const KeptRows& kept, std::size_t rows, const ModelAttributes& model) {
    const auto stored = values.read<std::uint32_t>(schema::run::stored_entries);
    const std::uint64_t each =
        2 * static_cast<std::uint64_t>(model.head_dim) * (model.dtype == "f32" ? sizeof(float) : sizeof(std::uint16_t));
    for (const auto* data_set : {&schema::run::cache_bytes, &schema::run::cache_bytes_predicted}) {
        const auto bytes = values.read<std::uint64_t>(*data_set);
        for (std::size_t layer = 0; layer < bytes.size() && (layer + 1) * rows < kept.offsets.size(); ++layer) {
            std::uint64_t whole = kept.offsets[(layer + 1) * rows] - kept.offsets[layer * rows];
            for (std::size_t row = layer * rows; row < std::min((layer + 1) * rows, stored.size()); ++row)
                whole -= std::min<std::uint64_t>(whole, stored[row]);
            if (bytes[layer] >= whole * each) continue;
            values.error(
                *data_set,
                fmt::format("at least {} bytes for the {} whole keys and values of the layer", whole * each, whole),
                fmt::format("{} at [{}]", bytes[layer], layer));
            break;
        }
    }
}

void check_bytes_by_kind(const Values& values, const std::vector<std::uint64_t>& predicted) {
    using namespace schema::run;
    std::vector<std::uint64_t> total(predicted.size(), 0);
    bool is_any = false;
    for (const auto* kind : {&stored_whole_bytes, &stored_channel_bytes, &stored_mapped_bytes, &stored_mass_bytes}) {
        const auto bytes = values.read<std::uint64_t>(*kind);
        is_any = is_any || !bytes.empty();
        for (std::size_t l = 0; l < std::min(bytes.size(), total.size()); ++l) total[l] += bytes[l];
    }
    if (!is_any || total == predicted) return;
    const auto at = std::mismatch(total.begin(), total.end(), predicted.begin());
    values.error(cache_bytes_predicted, fmt::format("{}, the sum over the kinds of storage", *at.first),
                 fmt::format("{} at [{}]", *at.second, at.first - total.begin()));
}

void check_bytes(const Values& values, std::size_t layers, std::size_t rows) {
    const auto held = values.read<std::uint64_t>(schema::run::cache_bytes);
    const auto predicted = values.read<std::uint64_t>(schema::run::cache_bytes_predicted);
    const auto by_row = values.read<std::uint64_t>(schema::run::head_bytes);
    check_bytes_by_kind(values, predicted);
    for (std::size_t l = 0; l < std::min(held.size(), predicted.size()); ++l) {
        if (held[l] < predicted[l]) {
            values.warning(schema::run::cache_bytes, fmt::format("at least {}, the predicted bytes", predicted[l]),
                           fmt::format("{} at [{}]", held[l], l));
            break;
        }
    }
    for (std::size_t l = 0; by_row.size() == layers * rows && l < held.size(); ++l) {
        const auto begin = by_row.begin() + static_cast<std::ptrdiff_t>(l * rows);
        const auto sum = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(rows), std::uint64_t{0});
        if (sum > held[l]) {
            values.warning(schema::run::head_bytes, fmt::format("at most {}, the bytes of the layer", held[l]),
                           fmt::format("{} at [{}]", sum, l));
            break;
        }
    }
}

void check_switches(const Values& values) {
    using namespace schema::run;
    const auto steps = values.read<std::uint32_t>(switch_steps);
    const auto is_full = values.read<std::uint8_t>(switch_is_full);
    values.integer_range<std::uint8_t>(switch_is_full, 0, 1);
    if (steps.size() != is_full.size())
        return values.error(switch_is_full, fmt::format("one value for each of the {} steps", steps.size()),
                            std::to_string(is_full.size()));
    const auto n_ids = values.read<std::int32_t>(output_ids).size();
    if (!steps.empty() && steps.back() >= n_ids && values.sound(output_ids))
        values.error(switch_steps, fmt::format("steps below {}, the length of the answer", n_ids),
                     std::to_string(steps.back()));
    for (std::size_t i = 1; i < steps.size(); ++i) {
        if (steps[i] <= steps[i - 1])
            values.error(switch_steps, fmt::format("a step above {} at index {}", steps[i - 1], i),
                         std::to_string(steps[i]));
        if (is_full[i] == is_full[i - 1])
            values.error(switch_is_full, "alternating 0 and 1", fmt::format("{} at {} and {}", is_full[i], i - 1, i));
    }
}

}  // namespace

void check_model_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                        Problems& problems) {
    using namespace schema::model;
    const Values values(file, group, sound, problems);
    for (const auto* whole : {&spectrum_q, &spectrum_k, &spectrum_v}) {
        check_descending(values, *whole, static_cast<std::size_t>(model.hidden_size));
    }
    for (const auto* by_head : {&head_spectrum_q, &head_spectrum_k, &head_spectrum_v}) {
        check_descending(values, *by_head, static_cast<std::size_t>(model.head_dim));
    }
}

void check_prompt_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                         const PromptAttributes& prompt, Problems& problems) {
    using namespace schema::prompt;
    const Values values(file, group, sound, problems);
    values.integer_range<std::int32_t>(token_ids, 0, model.vocab_size - 1);
    values.range(window_attention, -slack, 1 + slack);
    check_attention_sums(values, window_attention, static_cast<std::size_t>(prompt.visible_tokens()));
    values.range(query_similarity, -1 - slack, 1 + slack);
    for (const auto* similarity : {&adjacent_similarity_q, &adjacent_similarity_k, &adjacent_similarity_v}) {
        // A prompt of one token has no adjacent tokens.
        values.range(*similarity, -1 - slack, 1 + slack, prompt.visible_tokens() < 2);
    }
    const auto heads = static_cast<std::size_t>(model.n_heads), kv_heads = static_cast<std::size_t>(model.n_kv_heads);
    check_modes(values, mode_contribution_q, adjacent_similarity_q, heads);
    check_modes(values, mode_contribution_k, adjacent_similarity_k, kv_heads);
    check_modes(values, mode_contribution_v, adjacent_similarity_v, kv_heads);
    for (const auto* of_layers : {&layer_similarity_k, &layer_similarity_v})
        check_cosines(values, *of_layers, static_cast<std::size_t>(model.n_layers));
    for (const auto* of_heads : {&head_similarity_k, &head_similarity_v}) check_cosines(values, *of_heads, kv_heads);
    // The values are NaN if a head's queries never see two different entries.
    for (const auto* alignment : {&gradient_alignment_c11, &gradient_alignment_c12, &gradient_alignment_c22})
        values.range(*alignment, -1 - slack, 1 + slack, true);
    values.divergences(head_jsd, heads);
    values.range(last_logits, -infinity, std::numeric_limits<double>::max());
}

void check_run_values(hid_t file, const std::string& group, const Sound& sound, const ModelAttributes& model,
                      const PromptAttributes& prompt, const RunAttributes& run, Problems& problems) {
    using namespace schema::run;
    const Values values(file, group, sound, problems);
    const std::size_t rows = Extents(model, prompt, run).rows();
    const auto layers = static_cast<std::size_t>(model.n_layers);
    const auto tokens = static_cast<std::size_t>(prompt.visible_tokens());

    if (const auto kept = check_kept(values, tokens)) {
        check_budget(values, *kept, prompt, run);
        check_merged(values, *kept, rows, tokens);
        check_stored(values, *kept);
        check_whole_bytes(values, *kept, rows, model);
    }
    check_merged_keys(values);
    check_switches(values);
    values.range(scores, -infinity, std::numeric_limits<double>::max(), true);
    values.divergences(head_jsd, rows);
    values.integer_range<std::uint8_t>(channels_kept, 0, 1);
    values.integer_range<std::uint8_t>(stored_is_whole, 0, 1);
    values.range(channel_scores, -infinity, std::numeric_limits<double>::max());
    const double largest = std::numeric_limits<float>::max();
    for (const auto* measure : {&stored_key_width, &stored_value_width, &stored_key_error, &stored_value_error})
        values.range(*measure, 0, largest / 1000);
    values.integer_range<std::int32_t>(output_ids, 0, model.vocab_size - 1);
    for (const auto* ids : {&lookahead_ids, &pseudo_ids})
        values.integer_range<std::int32_t>(*ids, 0, model.vocab_size - 1);
    values.range(step_kl, -slack, largest);
    values.integer_range<std::uint8_t>(step_agreement, 0, 1);
    values.range(attention_kept, -slack, 1 + slack);
    values.range(output_error, 0, infinity);
    values.range(recall, 0, 1);
    values.range(answer_attention, -slack, infinity);
    values.range(kl_attention_lost, -slack, largest);
    check_bytes(values, layers, rows);
}

}  // namespace kvscope::trace
