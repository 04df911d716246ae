#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.h"

namespace kvscope::checkpoint {

/// A JSON value with its path for errors: "pre_tokenizer.behavior: expected a string, found a number".
class JsonNode {
 public:
    JsonNode(const nlohmann::json& value, std::string where) : JsonNode(value, std::move(where), 0) {}

    [[nodiscard]] const nlohmann::json& json() const { return *value_; }
    [[nodiscard]] const std::string& where() const { return where_; }

    [[nodiscard]] JsonNode at(std::string_view key) const;

    [[nodiscard]] std::optional<JsonNode> find(std::string_view key) const;

    [[nodiscard]] size_t size() const;
    [[nodiscard]] JsonNode operator[](size_t index) const;
    /// Returns the results of a function for all elements of a list.
    template <class Function>
    [[nodiscard]] auto each(Function function) const {
        std::vector<decltype(function(*this))> results;
        for (size_t i = 0; i < size(); ++i) results.push_back(function((*this)[i]));
        return results;
    }

    const std::string& text() const;
    [[nodiscard]] int64_t integer() const;

    [[nodiscard]] bool boolean_or(std::string_view key, bool otherwise) const;
    [[nodiscard]] std::string text_or(std::string_view key, std::string_view otherwise) const;

    void require_object() const;
    void require_array() const;

    [[noreturn]] void fail(const std::string& what) const;

 private:
    JsonNode(const nlohmann::json& value, std::string where, int depth);

    [[noreturn]] void expected(const char* what) const;

    const nlohmann::json* value_;
    std::string where_;
    int depth_;  // below the root node; limited, since nested nodes are processed recursively
};

}  // namespace kvscope::checkpoint
