#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "policies/interface/policy_errors.h"

namespace kvscope::policies {

enum class ParameterKind { integer, real, choice, boolean, text };

/// "integer", "real", …: as `kvscope policies` and the documentation print it.
std::string_view name_of(ParameterKind kind);

/// The value of a parameter that follows from something known only later (h2o's `recent` from the budget); written
/// `auto` on the command line and in JSON.
struct Automatic {
    bool operator==(const Automatic&) const = default;
};

using ParameterValue = std::variant<Automatic, int64_t, double, bool, std::string>;

/// Numbers a parameter takes: from low to high, each end included unless it is open; `odd` for kernel widths.
struct Range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool low_open = false;
    bool high_open = false;
    bool odd = false;

    bool contains(double value) const;
    std::string text() const;  ///< "in [0, 0.5]", "at least 1", "odd, at least 1"; empty where everything is allowed
};

/// One parameter of a policy, declared once: command line, form, help, documentation and trace come from it.
struct Parameter {
    std::string name;  ///< as on the command line: lower case, words joined by '_'
    ParameterKind kind = ParameterKind::integer;
    ParameterValue fallback;           ///< the default
    Range range;                       ///< integer and real
    std::vector<std::string> choices;  ///< choice
    /// Choice: other words, and the choice that each stands for. A boolean in JSON is the word `on` or `off`.
    std::vector<std::pair<std::string, std::string>> aliases;
    /// Text: throws ParameterError for one that the policy could not read; nullptr: any can be.
    void (*check_text)(const std::string& text) = nullptr;
    std::string help;       ///< one line, with the paper's equation or section
    std::string automatic;  ///< what `auto` stands for ("half of the budget"); empty: not allowed
    /// It acts on finished scores or not on kept sets at all: what it changes follows from a trace, without a prefill.
    bool after_scores = false;
    /// Boolean: where it is on, the scores themselves depend on the budget, and so does all that acts after them.
    bool binds_scores_to_budget = false;

    /// Reads and checks a value as written on a command line. Booleans: on|off, true|false, yes|no, 1|0.
    /// @throws ParameterError naming what is taken, or the nearest of the choices.
    ParameterValue parse(std::string_view text) const;

    /// Checks a value's type, range and choice, and returns it (an integer where a real is wanted becomes one, a choice
    /// takes its declared spelling).
    /// @throws ParameterError as parse does.
    ParameterValue checked(ParameterValue value) const;
};

/// Declarations in one line each.
Parameter integer_parameter(std::string name, int64_t fallback, Range range, std::string help);
Parameter automatic_integer_parameter(std::string name, std::string automatic, Range range, std::string help);
Parameter automatic_real_parameter(std::string name, std::string automatic, Range range, std::string help);
Parameter real_parameter(std::string name, double fallback, Range range, std::string help);
Parameter choice_parameter(std::string name, std::vector<std::string> choices, std::string fallback, std::string help);
Parameter boolean_parameter(std::string name, bool fallback, std::string help);
Parameter text_parameter(std::string name, std::string fallback, std::string help);

/// The same with `after_scores` set.
Parameter acting_after_scores(Parameter parameter);

/// A value as written on a command line: "0.45", "on", "auto", "max". Reals in the shortest form that reads back alike.
std::string to_text(const ParameterValue& value);

/// nullopt for what is no number: `auto`, a choice, a switch, a text.
std::optional<double> number_in(const ParameterValue& value);

/// A value for every declared parameter of one policy.
class ParameterValues {
 public:
    ParameterValues() = default;
    explicit ParameterValues(std::vector<Parameter> declared);  ///< all at their defaults

    /// '_' and '-' and upper and lower case are alike in names.
    /// @throws ParameterError for an unknown name (with the nearest ones and the whole list) or a value that is not
    /// taken.
    void set(std::string_view name, std::string_view text);
    void set_value(std::string_view name, ParameterValue value);
    /// A real, or an integer of which this is the number: what stands behind the point goes.
    void set_number(std::string_view name, double number);

    const std::vector<Parameter>& declared() const { return declared_; }
    bool has(std::string_view name) const;
    const ParameterValue& value(std::string_view name) const;
    bool is_default(std::string_view name) const;

    /// Typed access for policies. @throws std::logic_error where the policy declared it otherwise or not at all.
    int64_t integer(std::string_view name) const;
    std::optional<int64_t> automatic_integer(std::string_view name) const;  ///< nullopt: auto
    double real(std::string_view name) const;
    std::optional<double> automatic_real(std::string_view name) const;  ///< nullopt: auto
    bool boolean(std::string_view name) const;
    const std::string& text(std::string_view name) const;  ///< of choices, too

    /// An object with every parameter, defaults included, in the order of declaration: a trace's `parameters_json`.
    std::string to_json() const;
    /// The reverse; parameters that the object lacks stay at their defaults.
    /// @throws ParameterError where it is no object, or as `set` does.
    static ParameterValues from_json(std::vector<Parameter> declared, std::string_view json);

    /// "window=8,lambda=0.45": what differs from the defaults, in the order of declaration; empty for none.
    std::string text_of_changes() const;

    bool operator==(const ParameterValues& other) const;

 private:
    size_t index(std::string_view name) const;
    const Parameter& parameter(std::string_view name) const;

    std::vector<Parameter> declared_;
    std::vector<ParameterValue> values_;
};

}  // namespace kvscope::policies
