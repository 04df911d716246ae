#include "policies/api/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "common/bounded_json.h"
#include "common/json.h"
#include "common/split.h"
#include "policies/api/number_range.h"
#include "policies/registry/name_matching.h"

namespace kvscope::policies {

namespace {

std::string number_text(double value) {
    char buffer[32];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
    return std::string(buffer, end);
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

/// Returns nullopt if the text is not a list of numbers that are separated by commas.
template <class Number>
std::optional<std::vector<Number>> numbers_of(std::string_view text) {
    std::vector<Number> numbers;
    for (const std::string_view piece : split(text, ',')) {
        const auto number = whole_number<Number>(piece);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

template <class Number>
bool are_numbers(const ParameterValue& value, const Range& range) {
    const auto* text = std::get_if<std::string>(&value);
    const auto numbers = text ? numbers_of<Number>(*text) : std::nullopt;
    return numbers && std::ranges::all_of(*numbers, [&](Number number) {
               return std::isfinite(static_cast<double>(number)) && range.contains(static_cast<double>(number));
           });
}

std::optional<bool> truth(std::string_view text) {
    for (std::string_view word : {"on", "true", "yes", "1"}) {
        if (same_name(text, word)) return true;
    }
    for (std::string_view word : {"off", "false", "no", "0"}) {
        if (same_name(text, word)) return false;
    }
    return std::nullopt;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

struct KindTexts {
    std::string_view name, expectation;
};

const KindTexts& texts_of(ParameterKind kind) {
    static constexpr KindTexts texts[] = {{"integer", "a whole number"},
                                          {"real", "a number"},
                                          {"choice", "one of "},
                                          {"boolean", "on or off"},
                                          {"text", "text"},
                                          {"integers", "whole numbers separated by commas"},
                                          {"reals", "numbers separated by commas"},
                                          {"file", "the path of a file"},
                                          {"seed", "a whole number, at least 0 and below 2^64"}};
    return texts[static_cast<size_t>(kind)];
}

std::string expectation(const Parameter& parameter) {
    std::string text(texts_of(parameter.kind).expectation);
    if (parameter.kind == ParameterKind::choice) text += joined(parameter.choices);
    if (const std::string range = parameter.range.text(); !range.empty()) text += ", " + range;
    if (!parameter.automatic.empty()) text += ", or auto (" + parameter.automatic + ")";
    return text;
}

/// Limit for integers, so that the sum of two values fits into 32 bits.
constexpr double most_integer = 1e9;

[[noreturn]] void refuse(const Parameter& parameter, std::string_view found, std::string_view hint = "") {
    throw ParameterError(parameter.name + "=" + std::string(found) + ": expected " + expectation(parameter) + "." +
                         std::string(hint));
}

bool has_whole_numbers(const Parameter& parameter) {
    return parameter.kind == ParameterKind::integer || parameter.kind == ParameterKind::integers ||
           parameter.kind == ParameterKind::seed;
}

bool has_numbers(const Parameter& parameter) {
    return has_whole_numbers(parameter) || parameter.kind == ParameterKind::real ||
           parameter.kind == ParameterKind::reals;
}

/// Replaces each range in a list by its values.
std::string with_values_of_ranges(const Parameter& parameter, std::string_view list) {
    std::vector<std::string> values;
    for (const std::string_view piece : split(list, ','))
        std::ranges::move(parameter.values_of_range(piece).value_or(std::vector{std::string(piece)}),
                          std::back_inserter(values));
    return fmt::format("{}", fmt::join(values, ","));
}

std::vector<std::string> names_of(const std::vector<Parameter>& declared) {
    std::vector<std::string> names;
    for (const Parameter& parameter : declared) names.push_back(parameter.name);
    return names;
}

std::string unknown_parameter(std::string_view name, const std::vector<Parameter>& declared) {
    const std::vector<std::string> names = names_of(declared);
    return "unknown parameter " + quoted(name) + "." + did_you_mean(name, names) +
           (names.empty() ? " This policy has no parameters." : " Parameters: " + joined(names) + ".");
}

Parameter declared(std::string name, ParameterKind kind, ParameterValue fallback, std::string help,
                   const Range& range = {}) {
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.kind = kind;
    parameter.fallback = std::move(fallback);
    parameter.range = range;
    parameter.help = std::move(help);
    return parameter;
}

Parameter declared_automatic(std::string name, ParameterKind kind, std::string automatic, std::string help,
                             const Range& range) {
    Parameter parameter = declared(std::move(name), kind, Automatic{}, std::move(help), range);
    parameter.automatic = std::move(automatic);
    return parameter;
}

}  // namespace

std::string_view parameter_kind_name(ParameterKind kind) { return texts_of(kind).name; }

bool Range::contains(double value) const {
    if (std::isnan(value)) return false;
    if (low_open ? value <= low : value < low) return false;
    if (high_open ? value >= high : value > high) return false;
    return !odd || std::fmod(value, 2.0) != 0.0;
}

std::string Range::text() const {
    std::string text = odd ? "odd" : "";
    // for people: 100000 instead of 1e+05
    const auto number_text = [](double limit) {
        const bool is_whole = std::abs(limit) < 1e9 && limit == std::trunc(limit);
        return is_whole ? std::to_string(static_cast<int64_t>(limit)) : kvscope::policies::number_text(limit);
    };
    auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (std::isfinite(low) && std::isfinite(high)) {
        add(std::string("in ") + (low_open ? "(" : "[") + number_text(low) + ", " + number_text(high) +
            (high_open ? ")" : "]"));
    } else if (std::isfinite(low)) {
        add((low_open ? "above " : "at least ") + number_text(low));
    } else if (std::isfinite(high)) {
        add((high_open ? "below " : "at most ") + number_text(high));
    }
    return text;
}

ParameterValue Parameter::parse(std::string_view written) const {
    if (!automatic.empty() && same_name(written, "auto")) return Automatic{};
    switch (kind) {
        case ParameterKind::integer:
            if (const auto value = whole_number<int64_t>(written)) return checked(*value);
            break;
        case ParameterKind::real:
            if (const auto value = whole_number<double>(written)) return checked(*value);
            break;
        case ParameterKind::boolean:
            if (const auto value = truth(written)) return *value;
            break;
        case ParameterKind::integers:
        case ParameterKind::reals:
            return checked(with_values_of_ranges(*this, written));
        case ParameterKind::choice:
        case ParameterKind::text:
        case ParameterKind::file:
        case ParameterKind::seed:
            return checked(std::string(written));
    }
    refuse(*this, written);
}

std::optional<std::vector<std::string>> Parameter::values_of_range(std::string_view text) const {
    const auto range = has_numbers(*this) ? split_range(text) : std::nullopt;
    if (!range) return std::nullopt;
    const auto first = whole_number<double>(range->first), last = whole_number<double>(range->last);
    const auto step = range->step ? whole_number<double>(*range->step) : std::optional<double>(1.0);
    if (!first || !last || !step) refuse(*this, text, " A range has the form 8-64*2 or 16-64+16.");
    const bool is_whole = has_whole_numbers(*this);
    if (!range->step && !(is_whole && *last - *first < most_values_without_step))
        refuse(*this, text, " This range needs a step (16-64+16) or a factor (8-64*2).");
    constexpr double most_exact = 9007199254740992;  // 2^53: above this number, doubles cannot represent every integer
    const auto is_inexact = [](double number) { return number != std::trunc(number) || std::abs(number) > most_exact; };
    if (is_whole && (is_inexact(*first) || is_inexact(*last) || (!range->is_factor && is_inexact(*step))))
        refuse(*this, text, " The ends and the step of this range must be whole numbers, at most 2^53.");
    std::vector<std::string> values;
    try {
        for (const double value : policies::values_of_range(*first, *last, *step, range->is_factor)) {
            std::string written = is_whole ? std::to_string(std::llround(value)) : number_text(value);
            if (values.empty() || values.back() != written) values.push_back(std::move(written));
        }
    } catch (const std::invalid_argument& error) {
        throw ParameterError(name + "=" + std::string(text) + ": " + error.what());
    }
    return values;
}

ParameterValue Parameter::checked(ParameterValue value) const {
    if (std::holds_alternative<Automatic>(value)) {
        if (automatic.empty()) refuse(*this, "auto");
        return value;
    }
    switch (kind) {
        case ParameterKind::integer:
            if (const auto* number = std::get_if<int64_t>(&value)) {
                if (std::abs(static_cast<double>(*number)) > most_integer)
                    refuse(*this, to_text(value), " The maximum is 1,000,000,000.");
                if (range.contains(static_cast<double>(*number))) return value;
            }
            break;
        case ParameterKind::real: {
            if (const auto* whole = std::get_if<int64_t>(&value)) value = static_cast<double>(*whole);
            const auto* number = std::get_if<double>(&value);
            if (number && std::isfinite(*number) && range.contains(*number)) return value;
            break;
        }
        case ParameterKind::choice:
            if (std::holds_alternative<bool>(value)) value = to_text(value);
            if (const auto* word = std::get_if<std::string>(&value)) {
                for (const std::string& allowed : choices) {
                    if (same_name(allowed, *word)) return allowed;
                }
                for (const auto& [other, allowed] : aliases) {
                    if (same_name(other, *word)) return allowed;
                }
                refuse(*this, *word, did_you_mean(*word, choices));
            }
            break;
        case ParameterKind::boolean:
            if (std::holds_alternative<bool>(value)) return value;
            break;
        case ParameterKind::text:
            if (!std::holds_alternative<std::string>(value)) break;
            if (check_text) check_text(std::get<std::string>(value));
            return value;
        case ParameterKind::integers:
            if (are_numbers<int64_t>(value, range)) return value;
            break;
        case ParameterKind::reals:
            if (are_numbers<double>(value, range)) return value;
            break;
        case ParameterKind::file:
            if (std::holds_alternative<std::string>(value)) return value;
            break;
        case ParameterKind::seed:
            if (const auto* text = std::get_if<std::string>(&value); text && whole_number<uint64_t>(*text))
                return value;
            break;
    }
    refuse(*this, to_text(value));
}

Parameter integer_parameter(std::string name, int64_t fallback, Range range, std::string help) {
    return declared(std::move(name), ParameterKind::integer, fallback, std::move(help), range);
}

Parameter automatic_integer_parameter(std::string name, std::string automatic, Range range, std::string help) {
    return declared_automatic(std::move(name), ParameterKind::integer, std::move(automatic), std::move(help), range);
}

Parameter automatic_real_parameter(std::string name, std::string automatic, Range range, std::string help) {
    return declared_automatic(std::move(name), ParameterKind::real, std::move(automatic), std::move(help), range);
}

Parameter real_parameter(std::string name, double fallback, Range range, std::string help) {
    return declared(std::move(name), ParameterKind::real, fallback, std::move(help), range);
}

Parameter choice_parameter(std::string name, std::vector<std::string> choices, std::string fallback, std::string help) {
    Parameter parameter = declared(std::move(name), ParameterKind::choice, std::move(fallback), std::move(help));
    parameter.choices = std::move(choices);
    return parameter;
}

Parameter boolean_parameter(std::string name, bool fallback, std::string help) {
    return declared(std::move(name), ParameterKind::boolean, fallback, std::move(help));
}

Parameter text_parameter(std::string name, std::string fallback, std::string help) {
    return declared(std::move(name), ParameterKind::text, std::move(fallback), std::move(help));
}

Parameter integers_parameter(std::string name, std::string fallback, Range range, std::string help) {
    return declared(std::move(name), ParameterKind::integers, std::move(fallback), std::move(help), range);
}

Parameter reals_parameter(std::string name, std::string fallback, Range range, std::string help) {
    return declared(std::move(name), ParameterKind::reals, std::move(fallback), std::move(help), range);
}

Parameter file_parameter(std::string name, std::string help) {
    return declared(std::move(name), ParameterKind::file, std::string(), std::move(help));
}

Parameter seed_parameter(std::string name, std::string help) {
    return declared(std::move(name), ParameterKind::seed, std::string("0"), std::move(help));
}

Parameter mark_as_after_scoring(Parameter parameter) {
    parameter.after_scores = true;
    return parameter;
}

std::string to_text(const ParameterValue& value) {
    struct {
        std::string operator()(Automatic) const { return "auto"; }
        std::string operator()(int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return number_text(number); }
        std::string operator()(bool on) const { return on ? "on" : "off"; }
        std::string operator()(const std::string& text) const { return text; }
    } writer;
    return std::visit(writer, value);
}

std::optional<double> numeric_value(const ParameterValue& value) {
    if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return std::nullopt;
}

ParameterValues::ParameterValues(std::vector<Parameter> declared_parameters)
    : declared_(std::move(declared_parameters)) {
    for (const Parameter& parameter : declared_) values_.push_back(parameter.checked(parameter.fallback));
}

size_t ParameterValues::index(std::string_view name) const {
    for (size_t i = 0; i < declared_.size(); ++i) {
        if (same_name(declared_[i].name, name)) return i;
    }
    throw ParameterError(unknown_parameter(name, declared_));
}

const Parameter& ParameterValues::parameter(std::string_view name) const { return declared_[index(name)]; }

void ParameterValues::set(std::string_view name, std::string_view text) {
    const size_t i = index(name);
    values_[i] = declared_[i].parse(text);
}

void ParameterValues::set_value(std::string_view name, ParameterValue value) {
    const size_t i = index(name);
    values_[i] = declared_[i].checked(std::move(value));
}

void ParameterValues::set_number(std::string_view name, double number) {
    const bool is_whole = declared_[index(name)].kind == ParameterKind::integer;
    set_value(name, is_whole ? ParameterValue{static_cast<int64_t>(number)} : ParameterValue{number});
}

bool ParameterValues::has(std::string_view name) const {
    for (const Parameter& parameter : declared_) {
        if (same_name(parameter.name, name)) return true;
    }
    return false;
}

const ParameterValue& ParameterValues::value(std::string_view name) const { return values_[index(name)]; }

bool ParameterValues::is_default(std::string_view name) const { return value(name) == parameter(name).fallback; }

namespace {

template <class Type>
const Type& typed(const ParameterValue& value, std::string_view name) {
    if (const Type* held = std::get_if<Type>(&value)) return *held;
    throw std::logic_error("parameter " + std::string(name) + " is read with a type other than its declared one");
}

template <class Type>
std::optional<Type> automatic(const ParameterValue& value, std::string_view name) {
    if (std::holds_alternative<Automatic>(value)) return std::nullopt;
    return typed<Type>(value, name);
}

}  // namespace

int64_t ParameterValues::integer(std::string_view name) const { return typed<int64_t>(value(name), name); }

std::optional<int64_t> ParameterValues::automatic_integer(std::string_view name) const {
    return automatic<int64_t>(value(name), name);
}

double ParameterValues::real(std::string_view name) const { return typed<double>(value(name), name); }

std::optional<double> ParameterValues::automatic_real(std::string_view name) const {
    return automatic<double>(value(name), name);
}

bool ParameterValues::boolean(std::string_view name) const { return typed<bool>(value(name), name); }
const std::string& ParameterValues::text(std::string_view name) const { return typed<std::string>(value(name), name); }

std::vector<int64_t> ParameterValues::integers(std::string_view name) const {
    return numbers_of<int64_t>(text(name)).value();
}
std::vector<double> ParameterValues::reals(std::string_view name) const {
    return numbers_of<double>(text(name)).value();
}
uint64_t ParameterValues::seed(std::string_view name) const { return whole_number<uint64_t>(text(name)).value(); }

std::string ParameterValues::to_json() const {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (size_t i = 0; i < declared_.size(); ++i) {
        auto write = [&](const auto& held) {
            if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Automatic>) {
                object[declared_[i].name] = "auto";
            } else {
                object[declared_[i].name] = held;
            }
        };
        std::visit(write, values_[i]);
    }
    return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

ParameterValues ParameterValues::from_json(std::vector<Parameter> declared_parameters, std::string_view json) {
    ParameterValues values(std::move(declared_parameters));
    const nlohmann::json object = bounded_json::parse_or_discard(json);
    if (!object.is_object()) throw ParameterError("parameters: expected a JSON object, found " + quoted(json) + ".");
    for (const auto& [name, held] : object.items()) {
        if (held.is_boolean()) {
            values.set_value(name, held.get<bool>());
        } else if (held.is_number_integer()) {
            values.set_value(name, held.get<int64_t>());
        } else if (held.is_number()) {
            values.set_value(name, held.get<double>());
        } else if (held.is_string() && !values.parameter(name).automatic.empty() && held.get<std::string>() == "auto") {
            values.set_value(name, Automatic{});
        } else if (held.is_string()) {
            values.set_value(name, held.get<std::string>());
        } else {
            // Prints only the type, because printing deeply nested JSON would recurse deeply.
            refuse(values.parameter(name), held.is_array() ? "a list" : held.is_object() ? "an object" : "null");
        }
    }
    return values;
}

std::string ParameterValues::text_of_changes() const {
    std::string text;
    for (size_t i = 0; i < declared_.size(); ++i) {
        if (values_[i] == declared_[i].fallback) continue;
        text += (text.empty() ? "" : ",") + declared_[i].name + "=" + to_text(values_[i]);
    }
    return text;
}

bool ParameterValues::operator==(const ParameterValues& other) const {
    return values_ == other.values_ && names_of(declared_) == names_of(other.declared_);
}

}  // namespace kvscope::policies
