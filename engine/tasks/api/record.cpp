#include "engine/tasks/api/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/bounded_json.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"

namespace kvscope::engine {
namespace {

std::string names_of_fields(const nlohmann::json& object) {
    std::string names;
    for (const auto& [name, value] : object.items()) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
    return names.empty() ? "no field" : "only " + utf8_lossy(names.substr(0, 200));
}

bool is_text(const nlohmann::json& value) { return value.is_string(); }

bool is_filled_text(const nlohmann::json& value) {
    return value.is_string() && value.get_ref<const std::string&>().find_first_not_of(" \t\r\n") != std::string::npos;
}

}  // namespace

Record::Record(std::string_view text, std::string place, std::string_view example)
    : place_(std::move(place)), object_(bounded_json::parse_or_discard(text)) {
    if (!object_.is_object()) refuse(fmt::format("an object such as {}", example), object_);
}

bool Record::has_value(const char* field) const {
    const auto found = object_.find(field);
    return found != object_.end() && !found->empty() && *found != "";
}

const nlohmann::json& Record::at(const char* field) const {
    const auto found = object_.find(field);
    if (found == object_.end())
        throw UsageError(
            fmt::format("{}: expected the field \"{}\", found {}", place_, field, names_of_fields(object_)));
    return *found;
}

const std::string& Record::text(const char* field) const {
    const auto& value = at(field);
    if (!is_text(value)) refuse(fmt::format("a text as \"{}\"", field), value);
    return value.get_ref<const std::string&>();
}

const std::string& Record::filled_text(const char* field) const {
    const auto& value = at(field);
    if (!is_filled_text(value)) refuse(fmt::format("a text that is not blank as \"{}\"", field), value);
    return value.get_ref<const std::string&>();
}

std::vector<std::string> Record::texts(const char* field) const {
    const auto& value = at(field);
    if (!value.is_array() || value.empty() || !std::ranges::all_of(value, is_text))
        refuse(fmt::format("a list of texts as \"{}\"", field), value);
    return value.get<std::vector<std::string>>();
}

std::vector<std::string> Record::filled_texts(const char* field) const {
    const auto& value = at(field);
    if (!value.is_array() || value.empty() || !std::ranges::all_of(value, is_filled_text))
        refuse(fmt::format("a list of texts that are not blank as \"{}\"", field), value);
    return value.get<std::vector<std::string>>();
}

void Record::refuse(const std::string& expected, const nlohmann::json& found) const {
    throw UsageError(
        fmt::format("{}: expected {}, found {}", place_, expected,
                    found.is_discarded() ? "text that is not JSON" : utf8_lossy(found.dump().substr(0, 60))));
}

}  // namespace kvscope::engine
