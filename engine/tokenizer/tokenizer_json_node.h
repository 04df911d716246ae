#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// A JSON value with its path for errors: "pre_tokenizer.behavior: expected a string, found a number".
class JsonNode {
 public:
    JsonNode(const nlohmann::json& value, std::string where) : JsonNode(value, std::move(where), 0) {}

    const nlohmann::json& json() const { return *value_; }
    const std::string& where() const { return where_; }

    JsonNode at(std::string_view key) const;

    std::optional<JsonNode> find(std::string_view key) const;

    size_t size() const;
    JsonNode operator[](size_t index) const;

    const std::string& text() const;
    int64_t integer() const;

    bool boolean_or(std::string_view key, bool otherwise) const;
    std::string text_or(std::string_view key, std::string_view otherwise) const;

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
