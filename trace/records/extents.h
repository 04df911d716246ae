// Lengths of the axes of schema.h in one trace.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "trace/records/records.h"
#include "trace/records/schema.h"

namespace kvscope::trace {

class Extents {
 public:
    explicit Extents(const ModelAttributes& model) : model_(&model) {}
    Extents(const ModelAttributes& model, const PromptAttributes& prompt) : model_(&model), prompt_(&prompt) {}
    Extents(const ModelAttributes& model, const PromptAttributes& prompt, const RunAttributes& run)
        : model_(&model), prompt_(&prompt), run_(&run) {}

    /// Σ, the run's number of entries, and T, the full run's number of steps. Callers set both if they know them.
    std::optional<std::size_t> entries;
    std::optional<std::size_t> steps;

    [[nodiscard]] std::size_t rows() const {
        return size(run_->granularity == schema::run::granularity_query_head ? model_->n_heads : model_->n_kv_heads);
    }

    /// Returns the length of an axis, or nullopt if the length is unknown.
    [[nodiscard]] std::optional<std::size_t> of(schema::Dim dim) const {
        switch (dim) {
            case schema::Dim::layers:
                return size(model_->n_layers);
            case schema::Dim::heads:
                return size(model_->n_heads);
            case schema::Dim::kv_heads:
                return size(model_->n_kv_heads);
            case schema::Dim::rows:
                return rows();
            case schema::Dim::head_dim:
                return size(model_->head_dim);
            case schema::Dim::hidden:
                return size(model_->hidden_size);
            case schema::Dim::vocab:
                return size(model_->vocab_size);
            case schema::Dim::visible_tokens:
                return size(prompt_->visible_tokens());
            case schema::Dim::prompt_tokens:
                return size(prompt_->n_tokens);
            case schema::Dim::window:
                return size(prompt_->window);
            case schema::Dim::steps:
                return steps;
            case schema::Dim::row_offsets:
                return size(model_->n_layers) * rows() + 1;
            case schema::Dim::entries:
                return entries;
            case schema::Dim::any:
                return std::nullopt;
        }
        return std::nullopt;
    }

    /// Returns the shape of a data set with `count` elements and at most one unknown length, or empty if no shape fits.
    [[nodiscard]] std::vector<std::size_t> shape(const schema::DataSet& data_set, std::size_t count) const {
        std::vector<std::size_t> out;
        for (int i = 0; i < data_set.rank; ++i) {
            const std::size_t known = of(data_set.dims[static_cast<std::size_t>(i)]).value_or(count);
            out.push_back(known);
            if (known == 0 || count % known != 0) return known == 0 && count == 0 && data_set.rank == 1 ? out : empty();
            count /= known;
        }
        return count == 1 ? out : empty();
    }

 private:
    [[nodiscard]] static std::vector<std::size_t> empty() { return {}; }
    [[nodiscard]] static std::size_t size(std::int64_t value) {
        return value < 0 ? 0 : static_cast<std::size_t>(value);
    }

    const ModelAttributes* model_;
    const PromptAttributes* prompt_ = nullptr;
    const RunAttributes* run_ = nullptr;
};

}  // namespace kvscope::trace
