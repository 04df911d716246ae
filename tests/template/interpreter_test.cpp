// The interpreter within the test process: results for invalid templates.
#include "engine/template/interpreter.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace kvscope::chat_template;

namespace {

std::string good_template() {
    std::ifstream file(std::filesystem::path(KVSCOPE_LLAMA_SOURCE) / "models/templates/Qwen-Qwen3-0.6B.jinja");
    REQUIRE(file);
    return {std::istreambuf_iterator<char>(file), {}};
}

Request request(std::string source) {
    Request request;
    request.source = std::move(source);
    request.messages = {{"system", "s"}, {"user", "Hello"}};
    request.render = request.add_generation_prompt = true;
    return request;
}

}  // namespace

TEST_CASE("a template with changed bytes renders or is refused, and never crashes") {
    const std::string good = good_template();
    REQUIRE(render_template(request(good)).kind == Reply::Kind::text);
    int n_refused = 0;
    for (size_t i = 0; i < 3000; ++i) {
        std::string bad = good;
        const size_t at = (i * 7919 + 13) % bad.size();
        switch (i % 4) {
            case 0:
                bad.resize(at);
                break;
            case 1:
                bad.erase(at, 1 + i % 5);
                break;
            case 2:
                bad[at] = "{}%#'\"()[]|.,-+=~ \\0a"[i % 21];
                break;
            default:
                bad.insert(at, bad, (i * 31) % bad.size(), i % 40);
        }
        const Reply reply = render_template(request(bad));
        n_refused += reply.kind != Reply::Kind::text;
        if (reply.kind != Reply::Kind::text) REQUIRE_FALSE(reply.text.empty());
    }
    CHECK(n_refused > 1000);
}

TEST_CASE("a range of any size that no loop limits is refused") {
    for (const char* bounds : {"100001", "0, -100001, -1", "-9223372036854775807 - 1"}) {
        const Reply reply = render_template(request("{% for i in range(" + std::string(bounds) + ") %}{% endfor %}"));
        INFO(bounds);
        CHECK(reply.kind == Reply::Kind::failed);
        CHECK_THAT(reply.text, Catch::Contains("range() beyond 100000"));
    }
}

TEST_CASE("requests and replies are transmitted as bytes") {
    Request sent = request(std::string("{{ 'a\0b' }}", 11));
    sent.special_tokens = {{"bos_token", "<s>"}, {"eos_token", ""}};
    sent.now = -5;
    const Request got = parse_request(message_to_bytes(sent));
    CHECK(got.source == sent.source);
    CHECK(got.special_tokens == sent.special_tokens);
    CHECK(got.messages == sent.messages);
    CHECK(got.render);
    CHECK(got.now == sent.now);
    const std::string bytes = message_to_bytes(sent);
    for (size_t size = 0; size < bytes.size(); ++size)
        CHECK_THROWS_AS(parse_request(bytes.substr(0, size)), std::runtime_error);
    CHECK_THROWS_AS(parse_request(bytes + "x"), std::runtime_error);

    CHECK(parse_reply(message_to_bytes({Reply::Kind::refused, "why"}))->text == "why");
    CHECK_FALSE(parse_reply(""));
    CHECK_FALSE(parse_reply("?"));
}
