#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/json.h"

namespace kvscope::checkpoint {

/// Typed access to a JSON object. Null fields count as missing. Errors name the file and the field.
class JsonFields {
 public:
    /// @param where path of the object in the file, for messages: "" or "rope_scaling."
    JsonFields(const nlohmann::json& object, std::filesystem::path file, std::string where = "")
        : object_(&object), file_(std::move(file)), where_(std::move(where)) {}

    static nlohmann::json parse_file(const std::filesystem::path& file);

    [[nodiscard]] bool has(const char* name) const { return find(name) != nullptr; }
    /// Returns the sorted names of all fields with their path: "rope_scaling.factor".
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] const nlohmann::json* find(const char* name) const;
    /// Whether the field exists, even if null.
    [[nodiscard]] bool mentions(const char* name) const { return object_->contains(name); }

    std::optional<int64_t> integer(const char* name) const;
    [[nodiscard]] std::optional<double> number(const char* name) const;
    [[nodiscard]] std::optional<bool> boolean(const char* name) const;
    [[nodiscard]] std::optional<std::string> text(const char* name) const;
    [[nodiscard]] std::optional<std::vector<std::string>> texts(const char* name) const;
    [[nodiscard]] std::optional<std::vector<int64_t>> integers(const char* name) const;
    [[nodiscard]] std::optional<JsonFields> object(const char* name) const;

    [[nodiscard]] int64_t required_integer(const char* name) const;

    [[nodiscard]] const std::filesystem::path& file() const { return file_; }
    [[noreturn]] void fail(const std::string& what) const;
    /// Returns a value as text for messages, with at most 60 bytes. Writes NaN and Infinity as Python does.
    [[nodiscard]] static std::string shown(const nlohmann::json& value);

 private:
    template <class T>
    [[nodiscard]] std::optional<T> value(const char* name, bool (nlohmann::json::*is_valid)() const noexcept,
                                         const char* expected) const;
    [[noreturn]] void wrong_type(const char* name, const nlohmann::json& value, const char* expected) const;
    [[nodiscard]] int64_t as_integer(const char* name, const nlohmann::json& value, const char* expected) const;

    const nlohmann::json* object_;
    std::filesystem::path file_;
    std::string where_;
};

}  // namespace kvscope::checkpoint
