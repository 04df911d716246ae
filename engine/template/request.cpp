#include "engine/template/request.h"

#include <cstring>
#include <stdexcept>

namespace kvscope::chat_template {
namespace {

void put(std::string& to, uint64_t number) { to.append(reinterpret_cast<const char*>(&number), sizeof number); }

void put(std::string& to, std::string_view text) {
    put(to, uint64_t{text.size()});
    to += text;
}

class Bytes {
 public:
    explicit Bytes(std::string_view bytes) : left_(bytes) {}

    uint64_t number() {
        uint64_t value = 0;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }
    std::string text() {
        const uint64_t size = number();
        return std::string(take(size));
    }
    bool is_at_end() const { return left_.empty(); }

 private:
    std::string_view take(uint64_t size) {
        if (size > left_.size()) throw std::runtime_error("the request is truncated");
        const std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size);
        return taken;
    }
    std::string_view left_;
};

}  // namespace

std::string message_to_bytes(const Request& request) {
    std::string bytes;
    put(bytes, request.source);
    put(bytes, uint64_t{request.special_tokens.size()});
    for (const auto& [name, text] : request.special_tokens) {
        put(bytes, name);
        put(bytes, text);
    }
    put(bytes, uint64_t{request.messages.size()});
    for (const auto& [role, content] : request.messages) {
        put(bytes, role);
        put(bytes, content);
    }
    put(bytes, uint64_t{request.render});
    put(bytes, uint64_t{request.add_generation_prompt});
    put(bytes, uint64_t{request.now.has_value()});
    put(bytes, static_cast<uint64_t>(request.now.value_or(0)));
    return bytes;
}

Request parse_request(std::string_view all) {
    Bytes bytes(all);
    Request request;
    request.source = bytes.text();
    for (uint64_t left = bytes.number(); left > 0; --left) {
        std::string name = bytes.text();
        request.special_tokens[std::move(name)] = bytes.text();
    }
    for (uint64_t left = bytes.number(); left > 0; --left) {
        std::string role = bytes.text();
        request.messages.emplace_back(std::move(role), bytes.text());
    }
    request.render = bytes.number() != 0;
    request.add_generation_prompt = bytes.number() != 0;
    const bool has_time = bytes.number() != 0;
    const auto time = static_cast<std::time_t>(bytes.number());
    if (has_time) request.now = time;
    if (!bytes.is_at_end()) throw std::runtime_error("the request has extra bytes at its end");
    return request;
}

std::string message_to_bytes(const Reply& reply) { return static_cast<char>(reply.kind) + reply.text; }

std::optional<Reply> parse_reply(std::string_view bytes) {
    if (bytes.empty()) return std::nullopt;
    const auto kind = static_cast<Reply::Kind>(bytes.front());
    switch (kind) {
        case Reply::Kind::text:
        case Reply::Kind::invalid:
        case Reply::Kind::refused:
        case Reply::Kind::failed:
            return Reply{kind, std::string(bytes.substr(1))};
    }
    return std::nullopt;
}

}  // namespace kvscope::chat_template
