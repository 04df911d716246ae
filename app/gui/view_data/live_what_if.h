#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analysis/what_if/kept_summary.h"
#include "analysis/what_if/what_if.h"
#include "app/gui/session/session.h"
#include "policies/registry/registry.h"

namespace kvscope::gui {

class EngineSession;
class PrefillInMemory;

using analysis::KeptSummary;

/// Computes the selected run with another budget and other parameters while the user moves sliders, and shows the
/// newest result as a run of the document. UI thread only; does not use ImGui.
class LiveWhatIf {
 public:
    /// Follows the selection, takes finished results and requests new ones. Call at the start of each frame.
    void update(Session& session, const EngineSession* engine);
    /// Requests a result for settings that the widgets have changed. Call after the widgets.
    void follow_widgets(Session& session);

    /// Whether the selected run has a policy that selects entries.
    [[nodiscard]] bool has_source() const { return settings_ != nullptr; }
    [[nodiscard]] const RunKey& source() const { return source_; }
    /// Returns why the settings cannot be changed. Returns "" if they can be changed, and while the run is being read.
    [[nodiscard]] const std::string& refusal() const { return refusal_; }
    /// Whether repeating the prefill would make more settings available.
    [[nodiscard]] bool wants_prefill() const;
    [[nodiscard]] bool is_reading() const { return is_reading_; }

    [[nodiscard]] const policies::Definition& definition() const { return *settings_->recorded.definition; }
    [[nodiscard]] const policies::ParameterValues& recorded_values() const { return settings_->recorded.values; }
    [[nodiscard]] int64_t recorded_budget() const { return settings_->recorded_budget; }
    [[nodiscard]] int64_t n_tokens() const { return settings_->n_tokens; }
    [[nodiscard]] int64_t smallest_budget_to_try() const;
    [[nodiscard]] policies::ParameterValues& values() { return settings_->values; }
    [[nodiscard]] int64_t& budget() { return settings_->budget; }
    [[nodiscard]] policies::BudgetOf budget_of() const { return settings_->recorded.definition->budget_of; }

    [[nodiscard]] std::string obstacle(const policies::Parameter& parameter) const;
    [[nodiscard]] std::string budget_obstacle() const;
    /// Whether the recorded scores depend on the budget. Requires recorded scores of the run.
    [[nodiscard]] bool scores_follow_budget() const;
    [[nodiscard]] bool has_prefill() const { return prefill_ != nullptr; }
    [[nodiscard]] int widest_window() const;

    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] const std::optional<KeptSummary>& recorded_summary() const { return recorded_summary_; }
    /// Returns the summary of the newest result, or nullopt if the settings equal the recorded settings.
    [[nodiscard]] std::optional<KeptSummary> changed_summary() const;
    [[nodiscard]] std::optional<KeptSummary> summary_now() const;
    [[nodiscard]] double milliseconds() const { return settings_ ? settings_->milliseconds : 0; }
    /// Returns the what-if that follows the sliders, or an invalid key if there is none.
    [[nodiscard]] RunKey result(const Session& session) const;
    /// Returns the kept what-if with exactly the present settings, or an invalid key if there is none.
    [[nodiscard]] RunKey kept(const Session& session) const;
    /// Returns kept() if it is valid, else result().
    [[nodiscard]] RunKey shown(const Session& session) const;

    void reset();  ///< returns to the recorded settings
    void discard(Session& session);
    /// Saves the what-if with the annotations. The next change starts a new one.
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
        RunId added;  ///< the what-if; invalid if nothing has been changed yet
        std::optional<KeptSummary> summary;
        double milliseconds = 0;
        std::string shown;          ///< settings of `added`
        RunId kept;                 ///< kept what-if; no new what-if is made while the settings are the same
        std::string kept_settings;  ///< settings of `kept`
        std::optional<KeptSummary> kept_summary;
    };
    struct Computed {
        trace::RunRecord record;
        KeptSummary summary;
        double milliseconds = 0;
        std::string settings;
        RunKey source;
    };

    void follow_selection(const Session& session);
    void take_settings_of(const Session& session, const RunKey& what_if);
    void read_source(Session& session);
    void read_kept(Session& session);
    void leave_what_is_gone(const Session& session);
    void compute(Session& session);
    void show(Session& session, const Computed& computed);
    void select_result(Session& session);
    [[nodiscard]] std::string settings_text() const;
    [[nodiscard]] bool is_recorded() const;

    std::map<RunKey, std::unique_ptr<Settings>> all_;
    RunKey source_;
    RunKey told_;  ///< the run that was selected in the last frame
    Settings* settings_ = nullptr;
    std::string refusal_;
    std::string trace_refusal_;  ///< why the trace alone is not sufficient
    bool is_reading_ = false;
    std::string error_;
    std::optional<KeptSummary> recorded_summary_;
    std::shared_ptr<const analysis::WhatIf> from_trace_;
    std::shared_ptr<const PrefillInMemory> prefill_;
    std::string prefill_obstacle_;
    std::shared_ptr<const Computed> taken_;
    std::string asked_;  ///< settings that were requested last
    TaskSlot<analysis::WhatIf> source_slot_;
    TaskSlot<KeptSummary> recorded_slot_;
    TaskSlot<KeptSummary> kept_slot_;
    TaskSlot<Computed> result_slot_;
};

}  // namespace kvscope::gui
