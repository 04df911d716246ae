#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "policies/api/policy_errors.h"

namespace kvscope::policies {

/// Lists (`integers`, `reals`; separated by commas), files and seeds (unsigned, 64 bits) are stored as texts.
enum class ParameterKind { integer, real, choice, boolean, text, integers, reals, file, seed };

[[nodiscard]] std::string_view parameter_kind_name(ParameterKind kind);

/// Placeholder for a value that is computed later, such as h2o's `recent` from the budget. Written as `auto`.
struct Automatic {
    [[nodiscard]] bool operator==(const Automatic&) const = default;
};

using ParameterValue = std::variant<Automatic, int64_t, double, bool, std::string>;

/// Range of allowed numbers. Each end is included unless it is open.
struct Range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool low_open = false;
    bool high_open = false;
    bool odd = false;

    [[nodiscard]] bool contains(double value) const;
    [[nodiscard]] std::string text()
        const;  ///< "in [0, 0.5]", "at least 1", "odd, at least 1"; empty if any number is allowed
};

/// Declaration of a parameter of a policy or task, for the command line, forms, help, documentation and traces.
struct Parameter {
    std::string name;  ///< name on the command line: lower case, words joined by '_'
    ParameterKind kind = ParameterKind::integer;
    ParameterValue fallback;
    Range range;                       ///< used for integers and reals, also in lists
    std::vector<std::string> choices;  ///< used for choices
    /// Used for choices: pairs of a synonym and a choice. JSON booleans match the synonyms `on` and `off`.
    std::vector<std::pair<std::string, std::string>> aliases;
    /// Used for texts: throws ParameterError if the policy cannot use the text. nullptr if any text is valid.
    void (*check_text)(const std::string& text) = nullptr;
    std::string help;       ///< one line, with the paper's equation or section
    std::string automatic;  ///< meaning of `auto` ("half of the budget"); empty if `auto` is not allowed
    /// Whether the parameter only affects steps after scoring. A changed value then needs no new prefill.
    bool after_scores = false;
    /// Used for booleans: whether the scores depend on the budget if the parameter is on.
    bool binds_scores_to_budget = false;

    /// Reads a value from the command line. Booleans: on|off, true|false, yes|no, 1|0. @throws ParameterError
    /// The numbers of a list may be ranges, as in "8,16-64*2".
    [[nodiscard]] ParameterValue parse(std::string_view text) const;

    /// Returns the values of a range of numbers, as texts for parse(): "8", "16", "32", "64" for "8-64*2". Returns
    /// nullopt if the parameter is not a number or a list of numbers, or if the text is not a range.
    /// @throws ParameterError for a range that cannot be read
    [[nodiscard]] std::optional<std::vector<std::string>> values_of_range(std::string_view text) const;

    /// Returns a valid value, with integers converted to reals and choices spelled as declared. @throws ParameterError
    [[nodiscard]] ParameterValue checked(ParameterValue value) const;
};

[[nodiscard]] Parameter integer_parameter(std::string name, int64_t fallback, Range range, std::string help);
[[nodiscard]] Parameter automatic_integer_parameter(std::string name, std::string automatic, Range range,
                                                    std::string help);
[[nodiscard]] Parameter automatic_real_parameter(std::string name, std::string automatic, Range range,
                                                 std::string help);
[[nodiscard]] Parameter real_parameter(std::string name, double fallback, Range range, std::string help);
[[nodiscard]] Parameter choice_parameter(std::string name, std::vector<std::string> choices, std::string fallback,
                                         std::string help);
[[nodiscard]] Parameter boolean_parameter(std::string name, bool fallback, std::string help);
[[nodiscard]] Parameter text_parameter(std::string name, std::string fallback, std::string help);

[[nodiscard]] Parameter integers_parameter(std::string name, std::string fallback, Range range, std::string help);
[[nodiscard]] Parameter reals_parameter(std::string name, std::string fallback, Range range, std::string help);
[[nodiscard]] Parameter file_parameter(std::string name, std::string help);
[[nodiscard]] Parameter seed_parameter(std::string name, std::string help);

[[nodiscard]] Parameter mark_as_after_scoring(Parameter parameter);

/// Returns a value as the command line accepts it: "0.45", "on", "auto", "max". Reals have the shortest exact form.
[[nodiscard]] std::string to_text(const ParameterValue& value);

/// Returns nullopt if the value is not a number (`auto`, a choice, a boolean or a text).
[[nodiscard]] std::optional<double> numeric_value(const ParameterValue& value);

/// Values of all declared parameters of one policy or task.
class ParameterValues {
 public:
    ParameterValues() = default;
    explicit ParameterValues(std::vector<Parameter> declared);  ///< all parameters have their defaults

    /// Sets a parameter. Ignores case and treats '_' like '-'. @throws ParameterError for unknown names and values
    void set(std::string_view name, std::string_view text);
    void set_value(std::string_view name, ParameterValue value);
    /// Sets a real or integer parameter. If the parameter is an integer, the fractional part of `number` is dropped.
    void set_number(std::string_view name, double number);

    [[nodiscard]] const std::vector<Parameter>& declared() const { return declared_; }
    [[nodiscard]] bool has(std::string_view name) const;
    [[nodiscard]] const ParameterValue& value(std::string_view name) const;
    [[nodiscard]] bool is_default(std::string_view name) const;

    /// @throws std::logic_error if the policy does not declare this parameter with this type
    [[nodiscard]] int64_t integer(std::string_view name) const;
    [[nodiscard]] std::optional<int64_t> automatic_integer(std::string_view name) const;  ///< nullopt for `auto`
    [[nodiscard]] double real(std::string_view name) const;
    [[nodiscard]] std::optional<double> automatic_real(std::string_view name) const;  ///< nullopt for `auto`
    [[nodiscard]] bool boolean(std::string_view name) const;
    [[nodiscard]] const std::string& text(std::string_view name) const;  ///< also returns choices and files
    [[nodiscard]] std::vector<int64_t> integers(std::string_view name) const;
    [[nodiscard]] std::vector<double> reals(std::string_view name) const;
    [[nodiscard]] uint64_t seed(std::string_view name) const;

    /// Returns all parameters, defaults included, as a JSON object for a trace's `parameters_json`.
    [[nodiscard]] std::string to_json() const;
    /// Reads the output of to_json(), with defaults for missing parameters. @throws ParameterError
    static ParameterValues from_json(std::vector<Parameter> declared, std::string_view json);

    /// Returns the values that differ from the defaults: "window=8,lambda=0.45".
    std::string text_of_changes() const;

    [[nodiscard]] bool operator==(const ParameterValues& other) const;

 private:
    [[nodiscard]] size_t index(std::string_view name) const;
    [[nodiscard]] const Parameter& parameter(std::string_view name) const;

    std::vector<Parameter> declared_;
    std::vector<ParameterValue> values_;
};

}  // namespace kvscope::policies
