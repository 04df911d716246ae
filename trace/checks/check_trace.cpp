#include "trace/checks/check_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "common/bounded_json.h"
#include "common/json.h"
#include "trace/checks/problem_list.h"
#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/load_records.h"
#include "trace/recipe.h"
#include "trace/records/result_columns.h"
#include "trace/records/storable_text.h"
#include "trace/result_table.h"

namespace kvscope::trace {

namespace {

class TraceCheck {
 public:
    explicit TraceCheck(const std::filesystem::path& path) : source_(path) {}

    std::vector<Problem> run() {
        check_root();
        bool may_be_empty = true;
        if (const auto model = check_model()) {
            int expected = 0;
            for (const PromptPlace& place : source_.prompts) {
                if (place.number != expected++ && !source_.is_folder) {
                    problems_.error(
                        "/prompts",
                        fmt::format("the prompt {}, because prompts are numbered from 0 without gaps", expected - 1),
                        std::to_string(place.number));
                    expected = place.number + 1;
                }
                const std::size_t n_before = rows_of_runs_.size();
                guarded(place.group, [&] { check_prompt(place, *model); });
                rows_of_runs_.resize(n_before + place.runs.size());
            }
            check_recipe();
            may_be_empty = !source_.prompts.empty() || !source_.root.complete || is_of_model_alone();
        }
        bool is_empty = true;
        for (const auto& [task, tables] : source_.results) {
            const bool of_prompts = task == schema::root::prompt_results;
            for (const GroupPlace& table : tables) {
                guarded(table.group, [&] {
                    const h5::Handle open = h5::open_data_set(file(table), table.group);
                    const auto rows = load_results(open.get(), table.group);
                    check_results(rows, table.group, of_prompts);
                    if (of_prompts) check_rows_of_runs(rows, columns_of_table(open.get()), table.group);
                    is_empty = is_empty && of_prompts && rows.empty();
                });
            }
        }
        if (is_empty && !may_be_empty) problems_.error("/prompts", "a prompt, or results", "none");
        return problems_.take();
    }

 private:
    hid_t file(const GroupPlace& place) { return source_.open(place.file).get(); }

    /// Runs `action`. Reports unreadable contents as one problem at `path`.
    template <class Action>
    void guarded(const std::string& path, Action action) {
        try {
            action();
        } catch (const TraceError& failure) {
            problems_.error(path, "readable contents", failure.what());
        }
    }

    void check_root() {
        if (source_.is_folder) {
            problems_.warning("/", "a complete trace", "an unfinished trace; repeat its command to continue");
            return;
        }
        check_attributes(source_.open(source_.path).get(), "/", schema::root::attributes, problems_);
        if (!source_.root.complete) {
            problems_.warning("/@complete", "1", "0: prompts or runs may be missing");
        }
        const bool has_only_results = source_.prompts.empty() && !source_.results.empty();
        for (const auto* group : {"/model", "/prompts"}) {
            if (has_only_results && std::string_view(group) == "/model") continue;
            if (!h5::is_group(source_.open(source_.path).get(), group)) {
                problems_.error(group, "a group", "nothing");
            }
        }
    }

    std::optional<ModelAttributes> check_model() {
        std::optional<ModelAttributes> model;
        if (!source_.model) {
            if (source_.is_folder) problems_.warning("/model", "a group", "nothing yet");
            return model;
        }
        guarded("/model", [&] {
            const h5::Handle group = h5::open_group(file(*source_.model), "/model");
            check_attributes(group.get(), "/model", schema::model::attributes, problems_);
            const auto load = [&]() -> std::optional<ModelAttributes> {
                try {
                    return load_model(group.get(), "/model");
                } catch (const DamagedTrace& failure) {
                    problems_.error("/model", "valid attributes, which all further checks need", failure.what());
                    return std::nullopt;
                }
            };
            model = load();
            if (!model) return;
            check_model_attributes(*model);
            const Sound sound = check_data_sets(file(*source_.model), "/model", schema::model::data_sets,
                                                Extents(*model), {}, problems_);
            check_model_values(file(*source_.model), "/model", sound, *model, problems_);
        });
        return model;
    }

    void check_model_attributes(const ModelAttributes& model) {
        if (model.n_heads % model.n_kv_heads != 0) {
            problems_.error("/model@n_kv_heads", fmt::format("a divisor of n_heads, {}", model.n_heads),
                            std::to_string(model.n_kv_heads));
        }
        const auto is_hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
        if (model.fingerprint.size() != 64 ||
            !std::all_of(model.fingerprint.begin(), model.fingerprint.end(), is_hexadecimal)) {
            problems_.error("/model@fingerprint", "64 hexadecimal digits, 0-9 and a-f", quoted_text(model.fingerprint));
        }
        if (model.dtype != "f32" && model.dtype != "bf16" && model.dtype != "f16") {
            problems_.error("/model@dtype", "f32, bf16 or f16", quoted_text(model.dtype));
        }
        if (!(model.rope_theta > 0) || !std::isfinite(model.rope_theta))
            problems_.error("/model@rope_theta", "a finite number above 0", fmt::format("{:g}", model.rope_theta));
        check_json("/model@config_json", model.config_json);
    }

    /// Whether the recipe requests spectra but no prompts. A trace without prompts may also be a damaged one.
    bool is_of_model_alone() {
        const auto recipe = nlohmann::json::parse(source_.root.recipe_json, nullptr, false);
        return recipe.is_object() && recipe.contains(schema::root::recipe_spectra) && !recipe.contains("prompts") &&
               h5::exists(file(*source_.model), fmt::format("/model/{}", schema::model::spectrum_q.path));
    }

    void check_recipe() {
        if (source_.is_folder || !source_.root.complete || source_.root.recipe_json.empty()) return;
        const auto recipe = nlohmann::json::parse(source_.root.recipe_json, nullptr, false);
        if (!recipe.is_object() || !recipe.contains("runs") || !recipe["runs"].is_array()) return;
        std::vector<std::string> listed;
        for (const auto& run : recipe["runs"])
            listed.push_back(run.is_object() && run.contains("policy") && run["policy"].is_string()
                                 ? run["policy"].get<std::string>()
                                 : std::string());
        for (const PromptPlace& place : source_.prompts) {
            for (std::size_t i = 0; i < listed.size(); ++i) {
                const auto run = std::find_if(place.runs.begin(), place.runs.end(),
                                              [&](const GroupPlace& one) { return one.number == static_cast<int>(i); });
                const std::string at = fmt::format("{}/runs/{}", place.group, i);
                if (run == place.runs.end()) {
                    problems_.error(at, fmt::format("a run of {}, which the recipe lists", listed[i]), "nothing");
                    continue;
                }
                guarded(at, [&] {
                    const auto policy = load_run(h5::open_group(file(*run), run->group).get(), run->group).policy;
                    if (!listed[i].empty() && policy != listed[i])
                        problems_.error(at + "@policy", fmt::format("{}, as in the recipe", listed[i]), policy);
                });
            }
        }
    }

    void require(bool holds, const std::string& path, const char* expected, double found) {
        if (!holds) problems_.error(path, expected, fmt::format("{:g}", found));
    }
    void require_seconds(const std::string& path, double seconds) {
        require(std::isfinite(seconds) && seconds >= 0, path, "a finite number, 0 or more", seconds);
    }
    void require_share(const std::string& path, double share) {
        require(share >= 0 && share <= 1, path, "a number from 0 to 1", share);
    }

    void check_results(const std::vector<ResultRow>& rows, const std::string& table, bool of_prompts) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const bool complete = rows[i].status == schema::run::status_complete;
            for (const ResultColumn& column : result_columns) {
                const ResultColumn::Range& range = column.range;
                if (std::isinf(range.low) || (range.of_complete && !complete)) continue;
                const double found = std::visit(
                    [&](auto member) -> double {
                        if constexpr (std::is_same_v<decltype(member), SharedText ResultRow::*>)
                            return range.low;
                        else
                            return static_cast<double>(rows[i].*member);
                    },
                    column.member);
                const bool is_in_range = std::isfinite(found) && found >= range.low && found <= range.high;
                const bool has_no_score = column.name == "score" && rows[i].metric.empty();
                const bool may_be_unknown = range.or_nan || of_prompts || has_no_score;
                if (std::isnan(found) ? may_be_unknown : is_in_range) continue;
                problems_.error(fmt::format("{}[{}].{}", table, i, column.name),
                                std::isinf(range.high)
                                    ? fmt::format("a finite number, {:g} or more", range.low)
                                    : fmt::format("a number from {:g} to {:g}", range.low, range.high),
                                fmt::format("{:g}", found));
            }
        }
    }

    /// In a complete trace, the table of prompts has one row per run with the attributes of the run. Other programs may
    /// add runs without rows.
    void check_rows_of_runs(const std::vector<ResultRow>& rows, const std::set<std::string_view>& columns,
                            const std::string& table) {
        if (source_.prompts.empty()) return;  // the trace stores only rows
        std::size_t n_runs = 0;
        for (const PromptPlace& prompt : source_.prompts) n_runs += prompt.runs.size();
        if (rows.size() != n_runs) {
            if (!source_.is_folder)
                problems_.warning(table, fmt::format("{} rows, one per run of a prompt", n_runs),
                                  std::to_string(rows.size()));
            return;
        }
        for (std::size_t i = 0; i < rows_of_runs_.size(); ++i) {
            if (!rows_of_runs_[i]) continue;
            for (const ResultColumn& column : result_columns) {
                if (column.source != ValueFrom::attributes || !columns.contains(column.name) ||
                    have_same_value(column, rows[i], *rows_of_runs_[i]))
                    continue;
                problems_.error(fmt::format("{}[{}].{}", table, i, column.name), text_of(column, *rows_of_runs_[i]),
                                text_of(column, rows[i]));
            }
        }
    }

    static std::string text_of(const ResultColumn& column, const ResultRow& row) {
        return std::visit(
            [&](auto member) {
                if constexpr (std::is_same_v<decltype(member), SharedText ResultRow::*>)
                    return quoted_text(row.*member);
                else
                    return fmt::format("{}", row.*member);
            },
            column.member);
    }

    void check_run_attributes(const std::string& group, const RunAttributes& run, const PromptAttributes& prompt) {
        const auto at = [&](const char* name) { return fmt::format("{}@{}", group, name); };
        if (run.tied_heads) require_share(at("tied_heads"), *run.tied_heads);
        require(run.window >= 0, at("window"), "0 or more", static_cast<double>(run.window));
        require_seconds(at("prefill_s"), run.prefill_s);
        require_seconds(at("select_s"), run.select_s);
        if (run.first_token_s) require_seconds(at("first_token_s"), *run.first_token_s);
        if (run.decode_s) require_seconds(at("decode_s"), *run.decode_s);
        if (run.decode_tokens_per_s) require_seconds(at("decode_tokens_per_s"), *run.decode_tokens_per_s);
        if (run.status != schema::run::status_complete || run.budget_of) return;
        const double share = static_cast<double>(run.budget) / static_cast<double>(prompt.visible_tokens());
        if (!(std::abs(run.budget_fraction - share) <= 1e-6 * std::max(share, 1.0)))
            problems_.error(at("budget_fraction"), fmt::format("{:g}, budget / N", share),
                            fmt::format("{:g}", run.budget_fraction));
    }

    void check_json(const std::string& path, const std::string& text) {
        // The text needs to pass one parser only: bounded_json rejects deep nesting, and nlohmann's parser rejects NaN.
        if (bounded_json::parse_or_discard(text).is_discarded() && !nlohmann::json::accept(text))
            problems_.error(path, "JSON", quoted_text(text));
    }

    void check_prompt(const PromptPlace& place, const ModelAttributes& model) {
        const h5::Handle group = h5::open_group(file(place), place.group);
        check_attributes(group.get(), place.group, schema::prompt::attributes, problems_);
        const PromptAttributes prompt = load_prompt(group.get(), place.group);
        if (prompt.n_system && (*prompt.n_system < 0 || *prompt.n_system > prompt.visible_tokens()))
            problems_.error(place.group + "@n_system", fmt::format("0 to {}", prompt.visible_tokens()),
                            std::to_string(*prompt.n_system));
        Sound excused;
        if (prompt.context_of && source_.is_folder) {
            excused.insert(std::begin(schema::prompt::shared_data_sets), std::end(schema::prompt::shared_data_sets));
        }
        const Sound sound = check_data_sets(file(place), place.group, schema::prompt::data_sets, Extents(model, prompt),
                                            excused, problems_);
        check_prompt_values(file(place), place.group, sound, model, prompt, problems_);
        if (prompt.context_of) check_context_of(place, prompt);

        const auto steps = full_run_steps(place);
        bool full_seen = false;
        const ResultRow row = row_of_prompt(model, prompt);
        for (const GroupPlace& run : place.runs) {
            rows_of_runs_.emplace_back();
            guarded(run.group, [&] { full_seen = check_run(run, model, prompt, steps, row) || full_seen; });
        }
        if (!full_seen) {
            const bool expected_yet = !source_.is_folder && source_.root.complete;
            const std::string at = place.group + "/runs";
            if (expected_yet) {
                problems_.error(at, "a run of the policy full", "none");
            } else {
                problems_.warning(at, "a run of the policy full", "none yet");
            }
        }
    }

    void check_context_of(const PromptPlace& place, const PromptAttributes& prompt) {
        const auto source = std::find_if(source_.prompts.begin(), source_.prompts.end(),
                                         [&](const PromptPlace& p) { return p.number == *prompt.context_of; });
        if (source == source_.prompts.end() || source->number >= place.number) {
            problems_.error(place.group + "@context_of", "an earlier prompt", std::to_string(*prompt.context_of));
            return;
        }
        if (source_.is_folder) return;
        const auto check_links = [&](const std::string& from, const std::string& to, const auto& shared) {
            for (const schema::DataSet* data_set : shared) {
                const std::string a = fmt::format("{}/{}", from, data_set->path);
                const std::string b = fmt::format("{}/{}", to, data_set->path);
                const hid_t open = file(place);
                if (h5::exists(open, a) && h5::exists(open, b) && h5::address(open, a) != h5::address(open, b)) {
                    problems_.warning(b, fmt::format("a hard link to {}", a), "a separate data set");
                }
            }
        };
        check_links(source->group, place.group, schema::prompt::shared_data_sets);
        for (const GroupPlace& run : place.runs) {
            check_links(fmt::format("{}/runs/{}", source->group, run.number), run.group, schema::run::shared_data_sets);
        }
    }

    std::optional<std::size_t> full_run_steps(const PromptPlace& place) {
        for (const GroupPlace& run : place.runs) {
            try {
                const h5::Handle group = h5::open_group(file(run), run.group);
                const std::string steps(schema::run::step_kl.path);
                if (!load_run(group.get(), run.group).is_full() || !h5::exists(group.get(), steps)) continue;
                const auto shape = h5::data_set_info(h5::open_data_set(group.get(), steps).get()).shape;
                if (shape.size() == 1) return shape[0];
            } catch (const TraceError&) {
                // check_run() reports this error.
            }
        }
        return std::nullopt;
    }

    std::optional<std::size_t> length_of(const GroupPlace& place, const schema::DataSet& data_set) {
        const std::string path = fmt::format("{}/{}", place.group, data_set.path);
        if (!h5::exists(file(place), path) || h5::is_group(file(place), path)) return std::nullopt;
        const auto shape = h5::data_set_info(h5::open_data_set(file(place), path).get()).shape;
        return shape.size() == 1 ? std::optional(shape[0]) : std::nullopt;
    }

    /// Returns whether the run's policy is full.
    bool check_run(const GroupPlace& place, const ModelAttributes& model, const PromptAttributes& prompt,
                   std::optional<std::size_t> steps, ResultRow row) {
        const h5::Handle group = h5::open_group(file(place), place.group);
        check_attributes(group.get(), place.group, schema::run::attributes, problems_);
        RunAttributes run = load_run(group.get(), place.group);
        add_origin_of_recipe(run, recipe_);
        add_run_attributes(row, run);
        rows_of_runs_.back() = std::move(row);
        check_json(place.group + "@parameters_json", run.parameters_json);
        check_run_attributes(place.group, run, prompt);
        const bool full = run.is_full();
        if (run.budget <= 0 && run.status == schema::run::status_complete) {
            problems_.error(place.group + "@budget", "above 0", std::to_string(run.budget));
        } else if (full && run.budget != prompt.visible_tokens()) {
            problems_.error(place.group + "@budget", fmt::format("N, {}", prompt.visible_tokens()),
                            std::to_string(run.budget));
        }
        if (run.status == schema::run::status_failed) {
            if (run.message.empty())
                problems_.warning(place.group + "@message", "the reason for the failure", "nothing");
            return full;
        }

        Extents extents(model, prompt, run);
        // Without a full run, T is unknown. The lengths of the run's data sets must still agree.
        extents.steps = steps ? steps : length_of(place, schema::run::step_kl);
        extents.entries = length_of(place, schema::run::kept_indices);
        Sound excused;
        if (prompt.context_of && source_.is_folder) {
            excused.insert(std::begin(schema::run::shared_data_sets), std::end(schema::run::shared_data_sets));
        }
        const Sound sound =
            check_data_sets(file(place), place.group, schema::run::data_sets, extents, excused, problems_);
        check_run_values(file(place), place.group, sound, model, prompt, run, problems_);
        return full;
    }

    Source source_;
    nlohmann::json recipe_ = bounded_json::parse_or_discard(source_.root.recipe_json);
    Problems problems_;
    std::vector<std::optional<ResultRow>> rows_of_runs_;  ///< expected rows of the table of prompts; none if unreadable
};

}  // namespace

std::vector<Problem> find_problems(const std::filesystem::path& path) {
    const h5::Guard guard;
    return TraceCheck(path).run();
}

}  // namespace kvscope::trace
