#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analysis/what_if/kept_summary.h"
#include "analysis/what_if/what_if.h"
#include "app/gui/session/session.h"
#include "policies/interface/registry.h"

namespace kvscope::gui {

class EngineSession;
class PrefillInMemory;

using analysis::KeptSummary;

/// The selected run under another budget and other parameters, while they are moved: computed on a worker, newest
/// wins, and shown as a run of the document that all views can look at. Each run keeps the settings that were tried on
/// it. Knows no ImGui. All calls from the window's thread.
class LiveWhatIf {
 public:
    /// Once a frame, before anything else is asked: follows the selection, takes what was computed, asks for what
    /// changed. @param engine nullptr in a build without the engine
    void update(Session& session, const EngineSession* engine);
    /// Behind the widgets: what they changed in this frame is asked for in this frame.
    void follow_widgets(Session& session);

    /// Whether there is a run to change: selected, and of a policy that selects entries.
    bool has_source() const { return settings_ != nullptr; }
    const RunKey& source() const { return source_; }
    /// Why there is none, or why nothing about it can be changed; empty while it is being read, too.
    const std::string& refusal() const { return refusal_; }
    /// Whether a repeated prefill would help against what cannot be changed.
    bool wants_prefill() const;
    bool is_reading() const { return is_reading_; }

    const policies::Definition& definition() const { return *settings_->recorded.definition; }
    const policies::ParameterValues& recorded_values() const { return settings_->recorded.values; }
    int64_t recorded_budget() const { return settings_->recorded_budget; }
    int64_t n_tokens() const { return settings_->n_tokens; }
    /// Below it the policy's window alone would not fit.
    int64_t least_budget() const;
    /// To be set by widgets.
    policies::ParameterValues& values() { return settings_->values; }
    int64_t& budget() { return settings_->budget; }
    policies::BudgetOf budget_of() const { return settings_->recorded.definition->budget_of; }

    /// Why a parameter cannot be changed now; empty where it can.
    std::string obstacle(const policies::Parameter& parameter) const;
    std::string budget_obstacle() const;
    /// Of the trace's scores, where there are any to go by.
    bool scores_follow_budget() const;
    bool has_prefill() const { return prefill_ != nullptr; }
    int widest_window() const;

    /// What the policy says against the present settings; empty where nothing.
    const std::string& error() const { return error_; }
    const std::optional<KeptSummary>& recorded_summary() const { return recorded_summary_; }
    /// Of the newest result of the source; nullopt where nothing differs from the recorded run.
    std::optional<KeptSummary> changed_summary() const;
    /// Of the present settings: the changed one, or the recorded one where nothing was changed; nullopt where it is
    /// not known yet, or cannot be.
    std::optional<KeptSummary> summary_now() const;
    double milliseconds() const { return settings_ ? settings_->milliseconds : 0; }
    /// The what-if that follows the sliders, as a run; invalid where there is none.
    RunKey result(const Session& session) const;
    /// The kept what-if whose settings the sliders have; invalid where they have another's, or were moved since.
    RunKey kept(const Session& session) const;
    /// The run of the present settings: the kept one, or the result.
    RunKey shown(const Session& session) const;

    void reset();  ///< back to the recorded settings
    void discard(Session& session);
    /// Lets the what-if stand, also when the trace is opened the next time; the next change starts another from its
    /// settings.
    void keep(Session& session);

 private:
    struct Settings {
        policies::PolicySpec recorded;
        int64_t recorded_budget = 0;
        double recorded_share = 1;
        int64_t n_tokens = 0;
        uint64_t seed = 0;
        policies::ParameterValues values;
        int64_t budget = 0;
        RunId added;  ///< the what-if; not valid: nothing was changed yet
        std::optional<KeptSummary> summary;
        double milliseconds = 0;
        std::string shown;          ///< settings of the what-if
        RunId kept;                 ///< a what-if that was let stand: nothing new until the sliders leave its settings
        std::string kept_settings;  ///< of `kept`
        std::optional<KeptSummary> kept_summary;
    };
    struct Computed {
        trace::RunRecord record;
        KeptSummary summary;
        double milliseconds;
        std::string settings;
        RunKey source;
    };

    void follow_selection(const Session& session);
    /// The sliders go to the settings of a what-if of the source, which a person has selected.
    void take_settings_of(const Session& session, const RunKey& what_if);
    void read_source(Session& session);
    void read_kept(Session& session);
    /// Where the kept what-if was taken away, the sliders go to what is left.
    void leave_what_is_gone(const Session& session);
    void compute(Session& session);
    void show(Session& session, const Computed& computed);
    /// The views that show one run follow the slider.
    void select_result(Session& session);
    std::string settings_text() const;
    bool is_recorded() const;

    std::map<RunKey, std::unique_ptr<Settings>> all_;
    RunKey source_;
    RunKey told_;  ///< the run that was selected in the last frame
    Settings* settings_ = nullptr;
    std::string refusal_;
    std::string trace_refusal_;  ///< why the trace alone does not do
    bool is_reading_ = false;
    std::string error_;
    std::optional<KeptSummary> recorded_summary_;
    std::shared_ptr<const analysis::WhatIf> from_trace_;
    std::shared_ptr<const PrefillInMemory> prefill_;
    std::string prefill_obstacle_;
    std::shared_ptr<const Computed> taken_;
    std::string asked_;  ///< settings that were asked for last
    TaskSlot<analysis::WhatIf> source_slot_;
    TaskSlot<KeptSummary> recorded_slot_;
    TaskSlot<KeptSummary> kept_slot_;
    TaskSlot<Computed> result_slot_;
};

}  // namespace kvscope::gui
