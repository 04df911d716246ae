#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/json.h"

namespace kvscope::engine {

/// A JSON object of a file of samples. All functions throw UsageError with place, expected and found value.
class Record {
 public:
    /// @param place for messages, such as "samples.jsonl:3" @param example of an object, for messages
    Record(std::string_view text, std::string place, std::string_view example);

    [[nodiscard]] bool has(const char* field) const { return object_.contains(field); }
    /// Whether the field has a value other than null, "", [] and {}.
    [[nodiscard]] bool has_value(const char* field) const;
    /// Returns the value of a field that must exist.
    [[nodiscard]] const nlohmann::json& at(const char* field) const;
    [[nodiscard]] const std::string& text(const char* field) const;
    [[nodiscard]] const std::string& filled_text(const char* field) const;         ///< not blank
    [[nodiscard]] std::vector<std::string> texts(const char* field) const;         ///< at least one
    [[nodiscard]] std::vector<std::string> filled_texts(const char* field) const;  ///< at least one, none blank
    [[noreturn]] void refuse(const std::string& expected, const nlohmann::json& found) const;
    [[nodiscard]] const std::string& place() const { return place_; }

 private:
    std::string place_;
    nlohmann::json object_;
};

}  // namespace kvscope::engine
