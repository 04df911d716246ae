#include "engine/tokenizer/tokenizer_json_node.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kvscope::checkpoint {
namespace {

constexpr int deepest = 60;

const char* kind_of(const nlohmann::json& value) {
    if (value.is_null()) return "nothing (null)";
    if (value.is_object()) return "an object";
    if (value.is_array()) return "an array";
    if (value.is_string()) return "a string";
    if (value.is_boolean()) return "true or false";
    return "a number";
}

}  // namespace

JsonNode::JsonNode(const nlohmann::json& value, std::string where, int depth)
    : value_(&value), where_(std::move(where)), depth_(depth) {
    if (depth_ > deepest) throw std::runtime_error(fmt::format("is nested more than {} levels deep", deepest));
}

void JsonNode::fail(const std::string& what) const {
    throw std::runtime_error(where_.empty() ? what : where_ + ": " + what);
}

void JsonNode::expected(const char* what) const { fail(fmt::format("expected {}, found {}", what, kind_of(*value_))); }

void JsonNode::require_object() const {
    if (!value_->is_object()) expected("an object");
}

void JsonNode::require_array() const {
    if (!value_->is_array()) expected("an array");
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
    require_object();
    const auto found = value_->find(key);
    if (found == value_->end() || found->is_null()) return std::nullopt;
    return JsonNode(*found, where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key), depth_ + 1);
}

JsonNode JsonNode::at(std::string_view key) const {
    if (auto node = find(key)) return *node;
    fail(fmt::format("\"{}\" is missing", key));
}

size_t JsonNode::size() const {
    require_array();
    return value_->size();
}

JsonNode JsonNode::operator[](size_t index) const {
    require_array();
    return JsonNode((*value_)[index], fmt::format("{}[{}]", where_, index), depth_ + 1);
}

const std::string& JsonNode::text() const {
    if (!value_->is_string()) expected("a string");
    return value_->get_ref<const std::string&>();
}

int64_t JsonNode::integer() const {
    if (!value_->is_number_integer()) expected("an integer");
    if (value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        fail(fmt::format("{} is out of range", value_->get<uint64_t>()));
    }
    return value_->get<int64_t>();
}

bool JsonNode::boolean_or(std::string_view key, bool otherwise) const {
    const auto node = find(key);
    if (!node) return otherwise;
    if (!node->json().is_boolean()) node->expected("true or false");
    return node->json().get<bool>();
}

std::string JsonNode::text_or(std::string_view key, std::string_view otherwise) const {
    const auto node = find(key);
    return node ? node->text() : std::string(otherwise);
}

}  // namespace kvscope::checkpoint
