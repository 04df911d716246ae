#include "engine/options/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace kvscope::engine {
namespace {

using InForm = RunOption::InForm;
using InRecipe = RunOption::InRecipe;

std::vector<RunOption> declared() {
    std::vector<RunOption> all;
    all.push_back({.member = &RunOptions::query_aware,
                   .key = "query_aware",
                   .flags = "--query-aware",
                   .help = "off: compress the context before the question is read; several questions then share one "
                           "cache",
                   .choices = {"on", "off"},
                   .in_form = InForm::elsewhere});
    all.push_back({.member = &RunOptions::use_template,
                   .key = "template",
                   .flags = "!--no-template",
                   .help = "The text as it stands, without the model's own chat template",
                   .in_form = InForm::elsewhere,
                   .of_any_model = true});
    all.push_back({.member = &RunOptions::temperature,
                   .key = "temperature",
                   .flags = "--temp",
                   .name = "temperature",
                   .help = "Temperature; 0 is greedy: always the likeliest token",
                   .range = {.low = 0},
                   .refusal = "the temperature must be 0 (greedy) or more",
                   .in_recipe = InRecipe::always,
                   .in_form = InForm::row});
    all.push_back({.member = &RunOptions::top_p,
                   .key = "top_p",
                   .flags = "--top-p",
                   .name = "top-p",
                   .help = "Share of the probability that is drawn from: the fewest likeliest tokens that reach it",
                   .range = {.low = 0, .high = 1, .low_open = true},
                   .refusal = "top-p must be above 0 and at most 1",
                   .in_recipe = InRecipe::always,
                   .in_form = InForm::row});
    all.push_back({.member = &RunOptions::sampling_seed,
                   .key = "sampling_seed",
                   .flags = "--sampling-seed",
                   .name = "sampling seed",
                   .help = "Seed of the answers alone; without effect while they are greedy",
                   .follows = &RunOptions::seed,
                   .in_recipe = InRecipe::always,
                   .in_form = InForm::row});
    all.push_back({.member = &RunOptions::seed,
                   .key = "seed",
                   .flags = "-s,--seed",
                   .name = "policies' seed",
                   .help = "Seed of policies that draw: random",
                   .in_recipe = InRecipe::always,
                   .in_form = InForm::row});
    all.push_back({.member = &RunOptions::dtype,
                   .key = "dtype",
                   .flags = "--dtype",
                   .name = "dtype",
                   .help = "Type of weights and cache: f32, bf16, or auto: bf16 where the processor multiplies it "
                           "natively",
                   .remark = "Another type than before loads the model again.",
                   .choices = {"f32", "bf16", "auto"},
                   .refusal = "unknown type '{}': expected bf16, f32 or auto",
                   .in_form = InForm::row,
                   .of_any_model = true});
    all.push_back({.member = &RunOptions::isolated,
                   .key = "isolated",
                   .flags = "--isolated",
                   .name = "isolated",
                   .help = "One run at a time, as a server would: honest memory and speed",
                   .remark = "The prompt is read anew for each; else all runs share one prefill. What-if needs a "
                             "prefill in memory, and further questions need caches: only runs made together leave "
                             "them. After isolated runs both are made again when they are asked for.",
                   .while_on = "nothing stays in memory for what-ifs",
                   .in_form = InForm::row});
    all.push_back({.member = &RunOptions::ignore_eos,
                   .key = "ignore_eos",
                   .flags = "--ignore-eos",
                   .name = "ignore end of text",
                   .help = "Generate all of the tokens, also behind an end-of-text token",
                   .in_recipe = InRecipe::where_changed,
                   .in_form = InForm::row});
    all.push_back({.member = &RunOptions::n_new,
                   .key = "new_tokens",
                   .flags = "-n,--n-predict,--predict",
                   .help = "Tokens to generate",
                   .range = {.low = 1},
                   .refusal = "the number of tokens to generate must be at least 1",
                   .in_recipe = InRecipe::always,
                   .in_form = InForm::elsewhere,
                   .always_named = true});
    all.push_back({.member = &RunOptions::window,
                   .key = "window",
                   .flags = "--window",
                   .name = "window",
                   .help = "Last queries whose attention is recorded of the full cache (full/*)",
                   .remark = "Divergence, similarity and the attention that runs keep are measured on them. Larger "
                             "where a policy needs more.",
                   .range = {.low = 1},
                   .refusal = "the window that is recorded must be at least 1",
                   .in_recipe = InRecipe::always,
                   .in_form = InForm::row});
    all.push_back({.member = &RunOptions::compare,
                   .key = "compare",
                   .flags = "!--no-compare",
                   .help = "Leave out step_kl, step_agreement and output_error",
                   .in_recipe = InRecipe::always});
    all.push_back({.member = &RunOptions::record,
                   .key = "record",
                   .flags = "!--no-record",
                   .help = "Leave out the measures of the full cache (full/*)",
                   .in_recipe = InRecipe::always});
    all.push_back({.member = &RunOptions::alignment,
                   .key = "alignment",
                   .flags = "--alignment",
                   .name = "gradient alignment",
                   .help = "Also how each head's c11, c12 and c22 lie to the loss's gradient, of the prompt's first "
                           "2,048 tokens (KVSlimmer, Figure 3): a second pass, with gradients",
                   .remark = "For the view Spectrum.",
                   .in_recipe = InRecipe::where_changed,
                   .in_form = InForm::row,
                   .of_prompt = true});
    all.push_back({.member = &RunOptions::analyze,
                   .key = "analyze",
                   .flags = "--analyze",
                   .help = "Also the spectra of the projections",
                   .in_recipe = InRecipe::where_changed,
                   .of_prompt = true});
    return all;
}

const RunOptions defaults;

/// The JSON value as a T, where it is one.
template <class T>
std::optional<T> value_as(const nlohmann::json& value) {
    if constexpr (std::is_same_v<T, bool>) {
        if (value.is_boolean()) return value.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (value.is_string()) return value.get<std::string>();
    } else if constexpr (std::is_floating_point_v<T>) {
        if (value.is_number()) return value.get<T>();
    } else if (value.is_number_unsigned()) {
        if (std::in_range<T>(value.get<uint64_t>())) return static_cast<T>(value.get<uint64_t>());
    } else if (value.is_number_integer()) {
        if (std::in_range<T>(value.get<int64_t>())) return static_cast<T>(value.get<int64_t>());
    }
    return std::nullopt;
}

/// "--temp" of "!--temp,-t"
std::string first_flag(const RunOption& option) {
    const size_t begin = option.flags.starts_with('!') ? 1 : 0;
    return option.flags.substr(begin, option.flags.find(',') - begin);
}

bool has_value(const RunOption& option, RunOption::Member of, const RunOptions& options) {
    return std::visit(
        [&](auto member) {
            const auto* other = std::get_if<decltype(member)>(&of);
            return other && options.*member == options.*(*other);
        },
        option.member);
}

}  // namespace

std::string RunOption::text(const RunOptions& options) const {
    return std::visit(
        [&](auto member) -> std::string {
            if constexpr (std::is_same_v<decltype(member), bool RunOptions::*>)
                return options.*member ? "on" : "off";
            else
                return fmt::format("{}", options.*member);
        },
        member);
}

bool RunOption::is_default(const RunOptions& options) const {
    return std::visit([&](auto of) { return options.*of == defaults.*of; }, member);
}

void RunOption::reset(RunOptions& options) const {
    std::visit([&](auto of) { options.*of = defaults.*of; }, member);
}

std::string RunOption::problem(const RunOptions& options) const {
    const bool is_taken = std::visit(
        [&](auto of) {
            const auto& value = options.*of;
            if constexpr (std::is_same_v<decltype(of), std::string RunOptions::*>)
                return std::find(choices.begin(), choices.end(), value) != choices.end();
            else
                return range.contains(static_cast<double>(value));
        },
        member);
    return is_taken ? "" : fmt::format(fmt::runtime(refusal), text(options));
}

void RunOption::read(const nlohmann::json& object, RunOptions& options) const {
    if (!object.is_object()) return;
    const auto found = object.find(key);
    if (found == object.end()) return;
    std::visit(
        [&](auto of) {
            if (const auto value = value_as<std::decay_t<decltype(options.*of)>>(*found)) options.*of = *value;
        },
        member);
}

const std::vector<RunOption>& run_options() {
    static const std::vector<RunOption> all = declared();
    return all;
}

const RunOption& run_option(RunOption::Member member) {
    for (const RunOption& option : run_options())
        if (option.member == member) return option;
    throw std::logic_error("an option of a run that is not declared");
}

std::string problem_of(const RunOptions& options) {
    for (const RunOption& option : run_options())
        if (std::string problem = option.problem(options); !problem.empty()) return problem;
    return {};
}

void write_recipe(const RunOptions& options, nlohmann::ordered_json& recipe) {
    for (const RunOption& option : run_options()) {
        const bool named = option.in_recipe == InRecipe::always ||
                           (option.in_recipe == InRecipe::where_changed && !option.is_default(options));
        if (named) std::visit([&](auto member) { recipe[option.key] = options.*member; }, option.member);
    }
}

void read_recipe(const nlohmann::json& recipe, RunOptions& options) {
    for (const RunOption& option : run_options()) {
        if (option.in_recipe == InRecipe::no || option.of_prompt) continue;
        RunOptions read = options;
        option.read(recipe, read);
        if (option.problem(read).empty()) options = read;
    }
}

std::vector<std::pair<std::string, std::string>> command_words(const RunOptions& options) {
    std::vector<std::pair<std::string, std::string>> words;
    for (const RunOption& option : run_options()) {
        const bool usual = option.follows ? has_value(option, *option.follows, options) : option.is_default(options);
        if (usual && !option.always_named) continue;
        const bool is_switch = std::holds_alternative<bool RunOptions::*>(option.member) && option.choices.empty();
        words.emplace_back(first_flag(option), is_switch ? "" : option.text(options));
    }
    return words;
}

}  // namespace kvscope::engine
