#include "app/gui/view_data/live_what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/run_policy.h"
#include "analysis/runs/run_style.h"
#include "analysis/what_if/what_if_curve.h"
#include "app/gui/session/engine_session.h"

namespace kvscope::gui {
namespace {

constexpr const char* follows_budget = "the recorded scores depend on the recorded budget: repeat the prefill";

}  // namespace

void LiveWhatIf::update(Session& session, const EngineSession* engine) {
    std::erase_if(all_, [&](const auto& entry) { return !session.exists(entry.first); });
    follow_selection(session);
    if (!settings_) return;
    prefill_ = engine ? engine->prefill(source_.document, source_.prompt) : nullptr;
    prefill_obstacle_ =
        prefill_ ? prefill_->obstacle({settings_->recorded.definition, settings_->values}, settings_->budget) : "";
    read_source(session);
    read_kept(session);
    compute(session);
}

void LiveWhatIf::follow_selection(const Session& session) {
    RunKey selected = session.displayed_run();
    const RunKey told = selected;
    const bool is_new = std::exchange(told_, told) != told;
    const Document* document = session.document(selected);
    // The sliders of a what-if change its source.
    const bool is_what_if = document && document->is_what_if(selected.run);
    if (is_what_if) selected.run = document->source_of(selected.run);
    settings_ = nullptr;
    source_ = selected;
    refusal_.clear();
    if (is_what_if && !session.exists(selected)) {
        refusal_ = "The source of this what-if is no longer in the trace. Select another run.";
        return;
    }
    if (!document || !session.exists(selected)) {
        refusal_ = "Select a run to see what another budget or other parameters would keep.";
        return;
    }
    const trace::RunAttributes& run = session.attributes(selected);
    if (run.status != trace::schema::run::status_complete) {
        refusal_ = analysis::run_label(run) + " failed, so there is nothing to change. Select another run.";
        return;
    }
    if (run.is_full()) {
        refusal_ = "The full run keeps every entry. Select a compressed run.";
        return;
    }
    auto& settings = all_[selected];
    if (!settings) {
        auto fresh = std::make_unique<Settings>();
        try {
            fresh->recorded = analysis::policy_of_run(run);
        } catch (const analysis::NothingToShow& refused) {
            all_.erase(selected);
            refusal_ = refused.what();
            return;
        }
        fresh->values = fresh->recorded.values;
        fresh->budget = fresh->recorded_budget = run.budget;
        fresh->recorded_share = run.budget_fraction;
        fresh->n_tokens = document->reader()->prompt(selected.prompt).visible_tokens();
        fresh->seed = run.seed;
        settings = std::move(fresh);
    }
    settings_ = settings.get();
    if (is_what_if && is_new) take_settings_of(session, told);
}

void LiveWhatIf::take_settings_of(const Session& session, const RunKey& what_if) {
    const trace::RunAttributes& run = session.attributes(what_if);
    try {
        settings_->values = analysis::policy_of_run(run).values;
    } catch (const analysis::NothingToShow&) {
        return;  // the sliders stay unchanged
    }
    settings_->budget = run.budget;
    if (what_if.run == settings_->added) return;
    settings_->kept = what_if.run;
    settings_->kept_settings = settings_text();
    settings_->kept_summary.reset();
    settings_->milliseconds = 0;  // the time belongs to another computation
}

void LiveWhatIf::read_source(Session& session) {
    const std::string stamp = session.stamp(source_);
    const auto source =
        session.tasks.ask(source_slot_, "", stamp, [at = session.at(source_)](const std::stop_token& stop) {
            return analysis::WhatIf(at.reader->with_stop(stop), at.prompt, at.run);
        });
    from_trace_ = source.current ? source.value : nullptr;
    trace_refusal_ = source.current ? source.error : "";
    is_reading_ = !source.current;
    const auto recorded =
        session.tasks.ask(recorded_slot_, "", stamp, [at = session.at(source_)](const std::stop_token& stop) {
            return analysis::summarize_kept_entries(at.reader->with_stop(stop), at.prompt, at.run);
        });
    recorded_summary_ = recorded.current && recorded.value ? std::optional(*recorded.value) : std::nullopt;
    if (!is_reading_ && !from_trace_ && (!prefill_ || !prefill_obstacle_.empty()))
        refusal_ = trace_refusal_.find(prefill_obstacle_) != std::string::npos
                       ? trace_refusal_
                       : trace_refusal_ + "; " + prefill_obstacle_;
    else
        refusal_.clear();
}

void LiveWhatIf::read_kept(Session& session) {
    const RunKey run = kept(session);
    if (!run.valid()) return;
    const auto summary =
        session.tasks.ask(kept_slot_, "", session.stamp(run), [at = session.at(run)](const std::stop_token& stop) {
            return analysis::summarize_kept_entries(at.reader->with_stop(stop), at.prompt, at.run);
        });
    if (summary.current && summary.value) settings_->kept_summary = *summary.value;
}

void LiveWhatIf::leave_what_is_gone(const Session& session) {
    if (!settings_->kept.valid() || session.exists({source_.document, source_.prompt, settings_->kept})) return;
    settings_->kept = {};
    if (settings_text() != settings_->kept_settings) return;
    const RunKey left = result(session);
    left.valid() ? take_settings_of(session, left) : reset();
}

void LiveWhatIf::follow_widgets(Session& session) {
    if (settings_ && refusal_.empty() && settings_text() != asked_) compute(session);
}

void LiveWhatIf::compute(Session& session) {
    error_.clear();
    const bool stands = result(session).valid();
    if (!stands) settings_->added = {};
    leave_what_is_gone(session);
    const std::string settings = asked_ = settings_text();
    if (kept(session).valid()) return;
    settings_->kept = {};
    if (is_recorded() && !stands) return;
    if (is_recorded()) return discard(session);
    const bool by_trace = from_trace_ && from_trace_->needs_prefill(settings_->values, settings_->budget).empty();
    if (!by_trace && !prefill_) return;
    const auto trace = by_trace ? from_trace_ : nullptr;
    const auto answer = session.tasks.ask(
        result_slot_, "", fmt::format("{} {} {}", session.stamp(source_), settings, by_trace ? 0 : prefill_->number),
        [trace, prefill = prefill_, all = session.document(source_)->reader(), key = source_, settings,
         seed = settings_->seed, spec = policies::PolicySpec{settings_->recorded.definition, settings_->values},
         budget = settings_->budget,
         share = analysis::budget_as_share_of_full_cache(settings_->budget, settings_->recorded_budget,
                                                         settings_->recorded_share,
                                                         settings_->n_tokens)](const std::stop_token& stop) {
            const trace::Reader reader = all->with_stop(stop);
            const auto start = std::chrono::steady_clock::now();
            Computed computed;
            computed.record =
                trace ? (*trace)(spec.values, budget) : prefill->what_if(reader, key.prompt, spec, budget, share, seed);
            computed.summary = analysis::summarize_kept_entries(reader, key.prompt, computed.record);
            computed.milliseconds =
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
            computed.settings = settings;
            computed.source = key;
            return computed;
        });
    if (answer.current) error_ = answer.error;
    // If there is no what-if yet, ignores a result for earlier settings.
    const bool is_wanted = answer.value && answer.value != taken_ && answer.value->source == source_ &&
                           (settings_->added.valid() || answer.value->settings == settings);
    if (is_wanted) {
        taken_ = answer.value;
        // If the settings are unchanged, keep the existing what-if, because it may already have a decoded answer.
        if (!settings_->added.valid() || settings_->shown != answer.value->settings) show(session, *answer.value);
    }
}

void LiveWhatIf::show(Session& session, const Computed& computed) {
    Document& document = *session.document(source_);
    settings_->summary = computed.summary;
    settings_->milliseconds = computed.milliseconds;
    settings_->shown = computed.settings;
    const RunKey told = session.displayed_run();
    const bool is_other_what_if = told != result(session) && told.document == source_.document &&
                                  document.is_what_if(told.run) && document.source_of(told.run) == source_.run;
    if (settings_->added.valid()) {
        document.replace_run(settings_->added, computed.record);
        if (is_other_what_if) select_result(session);
        return;
    }
    settings_->added = document.add_run(source_.prompt, computed.record, source_.run);
    if (told == source_ || is_other_what_if) select_result(session);
    if (!session.pair.a && !session.pair.b) {
        session.pair.a = source_;
        session.pair.b = result(session);
    }
}

void LiveWhatIf::select_result(Session& session) {
    session.pair.flicker.reset();  // flicker would hide the result
    session.selection.select_run(result(session));
    told_ = session.displayed_run();  // do not copy the run's settings to the sliders, which may have moved meanwhile
}

std::string LiveWhatIf::settings_text() const {
    return fmt::format("{} @ {}", policies::PolicySpec{settings_->recorded.definition, settings_->values}.label(),
                       settings_->budget);
}

bool LiveWhatIf::is_recorded() const {
    return settings_->budget == settings_->recorded_budget && settings_->values == settings_->recorded.values;
}

bool LiveWhatIf::wants_prefill() const {
    if (!settings_ || prefill_ || is_reading_ || !analysis::obstacle_to_what_if(settings_->recorded).empty())
        return false;
    if (!from_trace_) return true;
    return std::ranges::any_of(definition().parameters,
                               [&](const policies::Parameter& parameter) { return !obstacle(parameter).empty(); });
}

std::string LiveWhatIf::obstacle(const policies::Parameter& parameter) const {
    if (is_reading_) return "reading the run";
    if (prefill_) return prefill_obstacle_;
    if (!from_trace_) return trace_refusal_;
    if (scores_follow_budget()) return follows_budget;
    if (parameter.after_scores) return {};
    return "this parameter changes the scores: repeat the prefill";
}

std::string LiveWhatIf::budget_obstacle() const {
    if (is_reading_) return "reading the run";
    if (policies::PolicySpec{settings_->recorded.definition, settings_->values}.own_share())
        return "a parameter sets the kept share, so the budget has no effect: set that parameter to auto";
    if (prefill_ && prefill_obstacle_.empty()) return {};
    if (!from_trace_) return trace_refusal_;
    return scores_follow_budget() ? follows_budget : "";
}

bool LiveWhatIf::scores_follow_budget() const {
    return !from_trace_->needs_prefill(recorded_values(), recorded_budget() + 1).empty();
}

int64_t LiveWhatIf::smallest_budget_to_try() const {
    return analysis::smallest_budget_to_try({settings_->recorded.definition, settings_->values}, recorded_budget(),
                                            n_tokens());
}

int LiveWhatIf::widest_window() const { return prefill_ ? prefill_->widest_window() : 0; }

std::optional<KeptSummary> LiveWhatIf::changed_summary() const {
    if (!settings_ || !error_.empty()) return std::nullopt;
    if (settings_->kept.valid()) return settings_->kept_summary;
    return settings_->added.valid() ? settings_->summary : std::nullopt;
}

std::optional<KeptSummary> LiveWhatIf::summary_now() const {
    if (const auto changed = changed_summary()) return changed;
    return settings_ && error_.empty() && is_recorded() ? recorded_summary_ : std::nullopt;
}

RunKey LiveWhatIf::result(const Session& session) const {
    const Document* document = settings_ ? session.document(source_) : nullptr;
    const RunKey what_if{source_.document, source_.prompt, settings_ ? settings_->added : RunId{}};
    return document && session.exists(what_if) ? what_if : RunKey{};
}

RunKey LiveWhatIf::kept(const Session& session) const {
    if (!settings_ || !settings_->kept.valid() || settings_text() != settings_->kept_settings) return {};
    const RunKey run{source_.document, source_.prompt, settings_->kept};
    return session.exists(run) ? run : RunKey{};
}

RunKey LiveWhatIf::shown(const Session& session) const {
    const RunKey run = kept(session);
    return run.valid() ? run : result(session);
}

void LiveWhatIf::reset() {
    settings_->values = settings_->recorded.values;
    settings_->budget = settings_->recorded_budget;
}

void LiveWhatIf::discard(Session& session) {
    if (session.cursor().run == shown(session)) session.selection.select_run(source_);
    session.remove_added_run({source_.document, source_.prompt, settings_->added});
    settings_->added = {};
    settings_->summary.reset();
    settings_->kept = {};
    taken_.reset();
    reset();
}

void LiveWhatIf::keep(Session& session) {
    session.document(source_)->keep_run(settings_->added);
    settings_->kept = std::exchange(settings_->added, {});
    settings_->kept_settings = settings_->shown;
    settings_->kept_summary = std::exchange(settings_->summary, {});
}

}  // namespace kvscope::gui
