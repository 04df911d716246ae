#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "analysis/memory_at.h"
#include "app/gui/session/model_names.h"
#include "trace/records.h"

namespace kvscope::gui {

/// The text's length and the model for which the table of runs says what the caches would take.
class MemoryChoice {
 public:
    /// "memory at … tokens of …", in a line that wraps. @param model the trace's own
    /// @param names what a person calls models
    void draw(const trace::ModelAttributes& model, const ModelNames& names);
    /// Nothing while nobody asked for it.
    std::optional<analysis::MemoryAt> at(const trace::ModelAttributes& model) const;

    bool is_on() const { return is_on_; }

    void save(nlohmann::json& state) const;
    void load(const nlohmann::json& state);

 private:
    analysis::CacheShape shape(const trace::ModelAttributes& model) const;

    bool is_on_ = false;
    int64_t n_tokens_ = 131'072;
    std::string model_;  ///< one of analysis::known_cache_shapes(); empty: the trace's own
    bool budgets_grow_ = false;
};

}  // namespace kvscope::gui
