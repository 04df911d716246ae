#include "engine/files/json_fields.h"

#include <cmath>

#include "engine/files/checkpoint_error.h"
#include "engine/files/json_text.h"

namespace kvscope::checkpoint {

using nlohmann::json;

json JsonFields::parse_file(const std::filesystem::path& file) {
    constexpr uint64_t limit = uint64_t{64} << 20;
    return read_json_object(file, limit);
}

const json* JsonFields::find(const char* name) const {
    const auto found = object_->find(name);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::fail(const std::string& what) const { throw CheckpointError(file_, what); }

std::string JsonFields::shown(const json& value) {
    if (value.is_number_float() && !std::isfinite(value.get<double>())) {
        const auto number = value.get<double>();
        return std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
    }
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 60) + "…" : text;
}

std::vector<std::string> JsonFields::names() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : object_->items()) names.push_back(where_ + name);
    return names;
}

void JsonFields::wrong_type(const char* name, const json& value, const char* expected) const {
    fail(where_ + name + " is " + shown(value) + ", expected " + expected);
}

int64_t JsonFields::as_integer(const char* name, const json& value, const char* expected) const {
    constexpr double exact = 9007199254740992.0;
    if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) wrong_type(name, value, expected);
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_number_float()) {
        const double number = value.get<double>();
        if (number > -exact && number < exact && number == static_cast<double>(static_cast<int64_t>(number))) {
            return static_cast<int64_t>(number);
        }
    }
    wrong_type(name, value, expected);
}

std::optional<int64_t> JsonFields::integer(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    return as_integer(name, *value, "a whole number");
}

template <class T>
std::optional<T> JsonFields::value(const char* name, bool (json::*is_valid)() const noexcept,
                                   const char* expected) const {
    const json* found = find(name);
    if (found == nullptr) return std::nullopt;
    if (!(found->*is_valid)()) wrong_type(name, *found, expected);
    return found->get<T>();
}

std::optional<double> JsonFields::number(const char* name) const {
    return value<double>(name, &json::is_number, "a number");
}

std::optional<bool> JsonFields::boolean(const char* name) const {
    return value<bool>(name, &json::is_boolean, "true or false");
}

std::optional<std::string> JsonFields::text(const char* name) const {
    return value<std::string>(name, &json::is_string, "a text");
}

std::optional<std::vector<std::string>> JsonFields::texts(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array()) wrong_type(name, *value, "a list of texts");
    std::vector<std::string> all;
    for (const json& item : *value) {
        if (!item.is_string()) wrong_type(name, item, "a list of texts");
        all.push_back(item.get<std::string>());
    }
    return all;
}

std::optional<std::vector<int64_t>> JsonFields::integers(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    constexpr const char* expected = "a whole number or a list of them";
    if (!value->is_array()) return std::vector<int64_t>{as_integer(name, *value, expected)};
    std::vector<int64_t> all;
    for (const json& item : *value) all.push_back(as_integer(name, item, expected));
    return all;
}

std::optional<JsonFields> JsonFields::object(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_object()) wrong_type(name, *value, "an object");
    return JsonFields(*value, file_, where_ + name + ".");
}

int64_t JsonFields::required_integer(const char* name) const {
    if (const auto value = integer(name)) return *value;
    fail("has no " + where_ + name);
}

}  // namespace kvscope::checkpoint
