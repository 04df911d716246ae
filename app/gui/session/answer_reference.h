#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "app/gui/session/comparison.h"

namespace kvscope::gui {

/// What answers are held against: the full cache's of the same prompt, run A's, or those of the same runs of another
/// open trace.
class AnswerReference {
 public:
    void choose_full() { chosen_ = Kind::full; }
    void choose_a() { chosen_ = Kind::a; }
    void choose_trace(const std::string& name) {
        chosen_ = Kind::trace;
        trace_ = name;
    }

    /// Before the answers of a frame are asked for.
    void resolve(const Session& session);

    /// Of what resolve() found; nothing where a run is the reference itself, or has no like.
    std::optional<RunKey> of(const Session& session, const RunKey& run) const;

    /// Those of the runs that have a reference, with it: of one trace less one trace.
    Compared compared(const Session& session, const std::vector<RunKey>& runs) const;

    bool is_full() const { return now_ == Kind::full; }
    bool is_trace(const std::string& name) const { return now_ == Kind::trace && trace_ == name; }
    bool is_one_run() const { return now_ == Kind::a; }
    /// "full", "A", "one.h5"
    const std::string& name() const { return name_; }
    /// "the full cache's", "A's", "one.h5's"
    std::string possessive() const { return now_ == Kind::full ? "the full cache's" : name_ + "'s"; }

    void save(nlohmann::json& state) const;
    void load(const nlohmann::json& state);

 private:
    enum class Kind { full, a, trace };
    Kind chosen_ = Kind::full;
    std::string trace_;  ///< that was chosen

    Kind now_ = Kind::full;  ///< what of it there is
    std::string name_ = "full";
    std::vector<ComparedRuns> pairs_;  ///< runs of all other traces, less those of `trace_`
};

}  // namespace kvscope::gui
