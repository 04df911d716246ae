#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// A value in a JSON file together with where it stands, so that every error says which one is wrong:
/// "pre_tokenizer.pretokenizers[1].behavior: expected a string, found a number". All errors are std::runtime_error,
/// also that of nodes nested deeper than any real file's.
class JsonNode {
 public:
    JsonNode(const nlohmann::json& value, std::string where) : JsonNode(value, std::move(where), 0) {}

    const nlohmann::json& json() const { return *value_; }
    const std::string& where() const { return where_; }

    /// A member of an object that must be there.
    JsonNode at(std::string_view key) const;

    /// A member of an object; nothing if it is missing or null.
    std::optional<JsonNode> find(std::string_view key) const;

    /// The elements of an array.
    size_t size() const;
    JsonNode operator[](size_t index) const;

    const std::string& text() const;
    int64_t integer() const;

    /// Members with a default for missing and null ones.
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
    int depth_;  // below the node that it all started from; what is made of nested nodes is made by recursion
};

}  // namespace kvscope::checkpoint
