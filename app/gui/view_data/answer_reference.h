#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "app/gui/view_data/comparison.h"

namespace kvscope::gui {

/// The reference for shown answers: the full run of the same prompt, run A, or the matching runs of another trace.
class AnswerReference {
 public:
    void choose_full() { chosen_ = Kind::full; }
    void choose_a() { chosen_ = Kind::a; }
    void choose_trace(const std::string& name) {
        chosen_ = Kind::trace;
        trace_ = name;
    }

    /// Determines the reference for this frame. Call once per frame before the other functions.
    void resolve(const Session& session);

    /// Returns the reference of a run, or nullopt if the run is the reference itself or has no matching run.
    [[nodiscard]] std::optional<RunKey> of(const Session& session, const RunKey& run) const;

    /// Returns each run of `runs` that has a reference, paired with the reference.
    [[nodiscard]] Compared compared(const Session& session, const std::vector<RunKey>& runs) const;

    [[nodiscard]] bool is_full() const { return now_ == Kind::full; }
    [[nodiscard]] bool is_trace(const std::string& name) const { return now_ == Kind::trace && trace_ == name; }
    [[nodiscard]] bool is_one_run() const { return now_ == Kind::a; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::string possessive() const { return now_ == Kind::full ? "the full cache's" : name_ + "'s"; }

    void save(nlohmann::json& state) const;
    void load(const nlohmann::json& state);

 private:
    enum class Kind { full, a, trace };
    Kind chosen_ = Kind::full;
    std::string trace_;  ///< name of the chosen trace

    Kind now_ = Kind::full;  ///< the reference in use: `chosen_` if it is available, else full
    std::string name_{full_policy};
    std::vector<ComparedRuns> pairs_;  ///< runs of all other traces, each with the matching run of `trace_`
};

}  // namespace kvscope::gui
