#include "engine/options/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "engine/options/device_name.h"

namespace kvscope::engine {
namespace {

using InForm = RunOption::InForm;
using InRecipe = RunOption::InRecipe;

struct Option : RunOption {
    Option(Member of, const char* its_key, const char* its_flags, const char* its_help) {
        member = of;
        key = its_key;
        flags = its_flags;
        help = its_help;
    }
    Option& recorded(InRecipe when = InRecipe::always) { return in_recipe = when, *this; }
    Option& row(const char* label, const char* also = "", const char* on = "") {
        return in_form = InForm::row, name = label, remark = also, while_on = on, *this;
    }
    Option& elsewhere_in_form() { return in_form = InForm::elsewhere, *this; }
    Option& number(policies::Range taken, const char* else_said) { return range = taken, refusal = else_said, *this; }
    Option& word(std::vector<std::string> taken, const char* else_said = "") {
        return choices = std::move(taken), refusal = else_said, *this;
    }
    Option& word_of_machine(bool (*taken)(std::string_view), const char* else_said) {
        return accepts = taken, refusal = else_said, of_machine = true, *this;
    }
    Option& following(Member other) { return follows = other, *this; }
    Option& not_of_run() { return of_prompt = true, *this; }
    Option& with_any_model() { return of_any_model = true, *this; }
    Option& named_always() { return always_named = true, *this; }
};

std::vector<RunOption> declared() {
    return {
        Option(&RunOptions::query_aware, "query_aware", "--query-aware",
               "Whether policies see the question; if off, the context is compressed first and its questions share one "
               "cache")
            .word({"on", "off"})
            .elsewhere_in_form(),
        Option(&RunOptions::use_template, "template", "!--no-template",
               "Read the prompt as given, without the model's chat template")
            .elsewhere_in_form()
            .with_any_model(),
        Option(&RunOptions::parse_special, "special", "!--no-special",
               "Read control tokens in the text (such as <|im_end|>) as plain text; only without the chat template")
            .elsewhere_in_form()
            .with_any_model(),
        Option(&RunOptions::temperature, "temperature", "--temp",
               "Sampling temperature; 0 always takes the most likely token (greedy)")
            .number({.low = 0}, "the temperature must be 0 (greedy) or more")
            .recorded()
            .row("temperature"),
        Option(&RunOptions::top_p, "top_p", "--top-p",
               "Nucleus sampling: draw from the smallest set of most likely tokens whose probabilities reach this sum")
            .number({.low = 0, .high = 1, .low_open = true}, "top-p must be above 0 and at most 1")
            .recorded()
            .row("top-p"),
        Option(&RunOptions::sampling_seed, "sampling_seed", "--sampling-seed",
               "Seed for sampling answers; has no effect if the temperature is 0")
            .following(&RunOptions::seed)
            .recorded()
            .row("sampling seed"),
        Option(&RunOptions::seed, "seed", "-s,--seed", "Seed of policies that choose at random")
            .recorded()
            .row("policies' seed"),
        Option(&RunOptions::dtype, "dtype", "--dtype",
               "Number type of weights and cache: f32, bf16, or auto (bf16 if the device multiplies it natively)")
            .word({"f32", "bf16", "auto"}, "unknown type '{}': expected bf16, f32 or auto")
            .row("dtype", "Changing this option loads the model again.")
            .with_any_model(),
        Option(&RunOptions::device, "device", "--device",
               "Device: cpu, cuda, cuda:N, or auto (a card with enough memory for the model, otherwise cpu)")
            .word_of_machine(is_device_name, "unknown device '{}': expected cpu, auto, cuda or cuda:N")
            .row("device", "Changing this option loads the model again.")
            .not_of_run()
            .with_any_model(),
        Option(&RunOptions::isolated, "isolated", "--isolated",
               "Run policies one at a time, each with its own prefill, so that time and memory are as on a server")
            .row("isolated",
                 "If off, all runs share one prefill. Isolated runs keep no prefill for what-ifs and no caches for "
                 "further questions in memory; both are computed again when needed.",
                 "no prefill stays in memory for what-ifs"),
        Option(&RunOptions::ignore_eos, "ignore_eos", "--ignore-eos",
               "Continue after an end-of-text token until all new tokens are generated")
            .recorded(InRecipe::where_changed)
            .row("ignore end of text"),
        Option(&RunOptions::n_new, "new_tokens", "-n,--n-predict,--predict", "Number of tokens to generate")
            .number({.low = 1}, "the number of tokens to generate must be at least 1")
            .recorded()
            .elsewhere_in_form()
            .named_always(),
        Option(&RunOptions::window, "window", "--window",
               "Number of the prompt's last queries whose attention in the full cache is recorded (full/*)")
            .number({.low = 1}, "the recorded window must be at least 1")
            .recorded()
            .row("window",
                 "Divergence, similarity and kept attention are measured on the window's queries. The window is larger "
                 "if a policy needs it."),
        Option(&RunOptions::compare, "compare", "!--no-compare",
               "Do not compute step_kl, step_agreement and output_error")
            .recorded(),
        Option(&RunOptions::record, "record", "!--no-record", "Do not record the measures of the full cache (full/*)")
            .recorded(),
        Option(&RunOptions::stored, "stored", "--record",
               "What the trace stores of each prompt. full: everything; measures: the kept entries and the measures "
               "per layer and head; rows: only the rows of results")
            .word({"full", "measures", "rows"}, "--record: expected full, measures or rows, found '{}'")
            .recorded(InRecipe::where_changed)
            .elsewhere_in_form(),
        Option(
            &RunOptions::alignment, "alignment", "--alignment",
            "Record the cosines between each head's c11, c12, c22 and the gradient of the loss over the prompt's first "
            "2,048 tokens (KVSlimmer, Figure 3); takes a second pass with gradients")
            .recorded(InRecipe::where_changed)
            .row("gradient alignment", "The Spectrum view shows the cosines.")
            .not_of_run(),
        Option(&RunOptions::analyze, "analyze", "--analyze", "Record the spectra of the projections")
            .recorded(InRecipe::where_changed)
            .not_of_run(),
    };
}

const RunOptions defaults;

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

/// Returns the first flag, for example "--temp" for "!--temp,-t".
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
                return accepts ? accepts(value) : std::find(choices.begin(), choices.end(), value) != choices.end();
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
    throw std::logic_error("this option of a run is not declared");
}

std::string find_option_problem(const RunOptions& options) {
    for (const RunOption& option : run_options())
        if (std::string problem = option.problem(options); !problem.empty()) return problem;
    return {};
}

void write_options_to_recipe(const RunOptions& options, nlohmann::ordered_json& recipe) {
    for (const RunOption& option : run_options()) {
        const bool named = option.in_recipe == InRecipe::always ||
                           (option.in_recipe == InRecipe::where_changed && !option.is_default(options));
        if (named) std::visit([&](auto member) { recipe[option.key] = options.*member; }, option.member);
    }
}

void read_options_from_recipe(const nlohmann::json& recipe, RunOptions& options) {
    for (const RunOption& option : run_options()) {
        if (option.in_recipe == InRecipe::no || option.of_prompt) continue;
        RunOptions read = options;
        option.read(recipe, read);
        if (option.problem(read).empty()) options = read;
    }
}

std::string recorded_device(const nlohmann::json& recipe) {
    RunOptions options;
    const RunOption& option = run_option(&RunOptions::device);
    option.read(recipe, options);
    const bool is_known =
        option.problem(options).empty() && options.device != "auto";  // recipes contain the device that "auto" selected
    return is_known ? options.device : RunOptions().device;
}

std::vector<std::pair<std::string, std::string>> to_command_line_options(const RunOptions& options) {
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
