#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "analysis/runs/extrapolated_memory.h"
#include "app/gui/session/renaming.h"
#include "trace/records/records.h"

namespace kvscope::gui {

/// The user's choice of a text length and a model, for which the table of runs estimates the cache's memory.
class MemoryChoice {
 public:
    /// Draws the fields "memory at … tokens of …", wrapped if necessary. `model` is the trace's model.
    void draw(const trace::ModelAttributes& model, const ModelNames& names);
    [[nodiscard]] std::optional<analysis::MemoryAt> at(const trace::ModelAttributes& model) const;

    [[nodiscard]] bool is_on() const { return is_on_; }

    void save(nlohmann::json& state) const;
    void load(const nlohmann::json& state);

 private:
    [[nodiscard]] analysis::CacheShape shape(const trace::ModelAttributes& model) const;

    bool is_on_ = false;
    int64_t n_tokens_ = 131'072;
    std::string model_;  ///< one of analysis::known_cache_shapes(), or empty for the trace's model
    bool budgets_grow_ = false;
};

}  // namespace kvscope::gui
