#include "app/cli/engine/declare_run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "app/cli/option_validators.h"
#include "common/lower_case.h"
#include "policies/registry/registry.h"

namespace kvscope::cli {
namespace {

using engine::RunOption;
using engine::RunOptions;

std::string help_of(const RunOption& option) {
    if (!option.follows) return option.help;
    return fmt::format("{} (default: as {})", option.help, engine::run_option(*option.follows).flags);
}

CLI::Option* declare_value(CLI::App& app, const RunOption& option, bool& value) {
    if (option.choices.empty()) return app.add_flag(option.flags, value, option.help);
    return app.add_option(option.flags, value, option.help)
        ->transform(OneOf(option.choices))
        ->type_name("TEXT")
        ->default_str(option.choices[value ? 0 : 1]);
}

template <class T>
CLI::Option* declare_value(CLI::App& app, const RunOption& option, T& value) {
    auto* declared = app.add_option(option.flags, value, help_of(option));
    if (!option.choices.empty()) declared->transform(OneOf(option.choices));
    if constexpr (std::is_same_v<T, std::string>) {
        if (option.accepts)
            declared->check(CLI::Validator(
                [&option](const std::string& text) {
                    return option.accepts(text) ? std::string() : fmt::format(fmt::runtime(option.refusal), text);
                },
                "NAME"));
    }
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
        if (std::isfinite(option.range.low))
            declared->check(WholeNumber(static_cast<int64_t>(option.range.low), std::numeric_limits<T>::max()));
    }
    return option.follows ? declared : declared->capture_default_str();
}

/// Reads "500MB", "1.5 GB" or "2000". @throws CLI::ValidationError
uint64_t size_in_bytes(std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string unit = lower_case(text.substr(static_cast<size_t>(end - text.data())));
    std::erase(unit, ' ');
    constexpr std::string_view units[] = {"b", "kb", "mb", "gb", "tb"};
    const auto* const found = std::ranges::find(units, unit.empty() ? "b" : unit);
    const double bytes = number * std::pow(1000.0, static_cast<double>(found - std::begin(units)));
    if (error != std::errc() || found == std::end(units) || !(bytes >= 1 && bytes < 1e18))
        throw CLI::ValidationError("--max-disk",
                                   fmt::format("expected a size such as 500MB, 1.5GB or 2TB, found '{}'", text));
    return static_cast<uint64_t>(bytes);
}

}  // namespace

CLI::Option* declare_run_option(CLI::App& app, std::string RunOptions::*member, std::string& value) {
    return declare_value(app, engine::run_option(member), value);
}

void declare_run_options(CLI::App& app, RunOptions& options) {
    std::vector<std::function<void()>> followers;
    for (const RunOption& option : engine::run_options()) {
        if (option.of_any_model) continue;
        std::visit(
            [&](auto member) {
                const auto* declared = declare_value(app, option, options.*member);
                if (!option.follows) return;
                const auto followed = std::get<decltype(member)>(*option.follows);
                followers.emplace_back([&options, declared, member, followed] {
                    if (declared->count() == 0) options.*member = options.*followed;
                });
            },
            option.member);
    }
    app.parse_complete_callback([followers] {
        for (const auto& follow : followers) follow();
    });
}

void declare_policy_and_budget_options(CLI::App& app, program::RunJob& job) {
    auto* policy = app.add_option("--policy", job.policies,
                                  "Policy with parameters, as in aperturekv:lambda=0,window=8, a list as in "
                                  "snapkv,h2o, or ranges of numbers as in "
                                  "snapkv:window=8-64*2; repeatable");
    suggest(policy->type_name("NAME[:K=V,…]"), defined_names(policies::definitions()));
    app.add_option("--same-window", job.same_window,
                   "Window of all policies that have the parameter `window` and do not set it, instead of their "
                   "different defaults")
        ->check(WholeNumber(1))
        ->type_name("W");
    app.add_option(
           "--budget", job.budgets,
           "Budget per KV head and layer: numbers of entries (64,128 or 64-512*2) or shares kept (0.2, 20%); a share "
           "of bytes for policies that keep every token")
        ->type_name("B[,B…]");
}

void declare_disk_limit(CLI::App& app, program::RunJob& job) {
    app.add_option_function<std::string>(
           "--max-disk", [&job](const std::string& text) { job.most_disk_bytes = size_in_bytes(text); },
           "Refuse a trace of a larger predicted size, and stop a job before its unfinished trace exceeds this size, "
           "such as 500MB or 2GB; finished prompts are kept")
        ->type_name("SIZE");
}

}  // namespace kvscope::cli
