#include "app/gui/run_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/program/paths.h"
#include "policies/interface/budget.h"

namespace kvscope::gui {
namespace {

std::string without_last_breaks(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

}  // namespace

RunForm::RunForm() {
    request.budgets = "64,256";
    for (const auto& definition : policies::definitions()) {
        if (definition.name == "full") continue;
        rows.push_back({next_id_++,
                        definition.name == "snapkv" || definition.name == "aperturekv",
                        {&definition, policies::ParameterValues(definition.parameters)}});
    }
}

void RunForm::duplicate(size_t row) {
    PolicyRow copy = rows.at(row);
    copy.id = next_id_++;
    copy.ticked = true;
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(row) + 1, std::move(copy));
}

bool RunForm::remove(size_t row) {
    const auto* definition = rows.at(row).spec.definition;
    const auto n = std::count_if(rows.begin(), rows.end(),
                                 [&](const PolicyRow& other) { return other.spec.definition == definition; });
    if (n < 2) return false;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(row));
    return true;
}

int RunForm::n_ticked() const {
    return static_cast<int>(std::count_if(rows.begin(), rows.end(), [](const PolicyRow& row) { return row.ticked; }));
}

std::string RunForm::problem(const std::optional<TokenCount>& tokens) const {
    if (request.context.find_first_not_of(" \t\r\n") == std::string::npos)
        return "Write a prompt, or take one of the samples.";
    if (n_ticked() == 0) return "Tick at least one policy.";
    try {
        budget_lines(tokens);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    if (request.n_new < 1) return "At least one token has to be generated.";
    if (tokens && !tokens->error.empty()) return tokens->error;
    if (tokens && tokens->context_length > 0 && tokens->n_tokens + request.n_new > tokens->context_length)
        return fmt::format("{} tokens and {} to generate are {} more than the model's context of {}.", tokens->n_tokens,
                           request.n_new, tokens->n_tokens + request.n_new - tokens->context_length,
                           tokens->context_length);
    for (size_t i = 0; i < rows.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            if (rows[i].ticked && rows[j].ticked && rows[i].spec == rows[j].spec)
                return fmt::format("{} stands there twice with the same parameters.", rows[i].spec.label());
        }
    }
    return {};
}

std::vector<std::string> RunForm::budget_lines(const std::optional<TokenCount>& tokens) const {
    std::vector<std::string> lines;
    for (const auto& budget : policies::parse_budgets(request.budgets)) {
        const bool is_known = tokens && tokens->error.empty() && tokens->n_visible > 0;
        lines.push_back(is_known ? budget.describe(tokens->n_visible)
                                 : fmt::format("{} {}", budget.text(),
                                               budget.is_share ? "of the prompt kept" : "entries kept per KV head"));
    }
    return lines;
}

int RunForm::n_runs() const {
    try {
        return 1 + n_ticked() * static_cast<int>(policies::parse_budgets(request.budgets).size());
    } catch (const policies::BudgetError&) {
        return 0;
    }
}

RunRequest RunForm::filled_in() const {
    RunRequest filled = request;
    filled.policies.clear();
    for (const PolicyRow& row : rows) {
        if (row.ticked) filled.policies.push_back(row.spec.label());
    }
    return filled;
}

nlohmann::json RunForm::to_json() const {
    nlohmann::json policies = nlohmann::json::array();
    for (const PolicyRow& row : rows) policies.push_back({{"policy", row.spec.label()}, {"ticked", row.ticked}});
    nlohmann::json state = {{"name", request.name},
                            {"context", request.context},
                            {"question", request.question},
                            {"query_aware", request.query_aware},
                            {"template", request.use_template},
                            {"budgets", request.budgets},
                            {"new_tokens", request.n_new},
                            {"output", request.output.string()},
                            {"policies", policies}};
    if (request.spectra) state["spectra"] = *request.spectra;
    return state;
}

void RunForm::from_json(const nlohmann::json& state) {
    if (!state.is_object()) return;
    request.name = state.value("name", request.name);
    request.context = state.value("context", request.context);
    request.question = state.value("question", request.question);
    request.query_aware = state.value("query_aware", request.query_aware);
    request.use_template = state.value("template", request.use_template);
    request.budgets = state.value("budgets", request.budgets);
    request.n_new = std::clamp(state.value("new_tokens", request.n_new), 1, 1 << 20);
    request.output = state.value("output", std::string());
    if (state.contains("spectra") && state["spectra"].is_boolean()) request.spectra = state["spectra"].get<bool>();
    if (!state.contains("policies") || !state["policies"].is_array()) return;
    std::vector<PolicyRow> read;
    for (const auto& saved : state["policies"]) {
        try {
            read.push_back({next_id_++, saved.value("ticked", false),
                            policies::parse_policy(saved.value("policy", std::string()))});
        } catch (const std::exception&) {
            continue;
        }
    }
    for (PolicyRow& row : rows) {  // policies that were not there when the state was saved
        const bool is_there = std::any_of(read.begin(), read.end(), [&](const PolicyRow& other) {
            return other.spec.definition == row.spec.definition;
        });
        if (!is_there) read.push_back({row.id, false, std::move(row.spec)});
    }
    rows = std::move(read);
}

const std::vector<std::pair<std::string, std::string>>& sample_prompts() {
    static const std::vector<std::pair<std::string, std::string>> all = {
        {"demo", "The demo's: about 2,000 tokens"},
        {"needle", "A fact hidden in a log"},
        {"translation", "One sentence in many scripts"},
        {"code", "A class with a bug"}};
    return all;
}

SamplePrompt sample_prompt(const std::string& name) {
    using program::asset;
    using program::read_text;
    if (name == "demo") {
        return {name, read_text(asset("demo/demo_context.txt")),
                without_last_breaks(read_text(asset("demo/demo_question.txt")))};
    }
    const std::string text = read_text(asset("prompts/" + name + ".txt"));
    const size_t line = text.find("\n---\n");
    if (line == std::string::npos) return {name, text, {}};
    return {name, text.substr(0, line), without_last_breaks(text.substr(line + 5))};
}

}  // namespace kvscope::gui
