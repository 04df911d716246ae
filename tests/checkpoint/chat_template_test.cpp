// Rendered chat templates compared with transformers; see scripts/golden/chat_templates.py.
#include "engine/checkpoint/chat_template.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

#include "common/json.h"
#include "common/stopped.h"
#include "tests/checkpoint/files.h"
#include "tests/sanitized.h"

namespace {

using kvscope::checkpoint::ChatTemplate;
using kvscope::checkpoint::CheckpointError;
using kvscope::checkpoint::Message;
using kvscope::checkpoint::render_prompt;
using kvscope::checkpoint::RenderedPrompt;
using kvscope::checkpoint::testing::read_file;
using kvscope::checkpoint::testing::TemporaryFolder;
using kvscope::checkpoint::testing::write_file;
using nlohmann::json;
namespace fs = std::filesystem;

/// FNV-1a, as in the script.
std::string checksum(const std::string& text) {
    uint64_t value = 0xcbf29ce484222325u;
    for (const char byte : text) value = (value ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016lx", value);
    return digits;
}

std::time_t local_time(const json& fields) {
    std::tm when{};
    when.tm_year = fields[0].get<int>() - 1900;
    when.tm_mon = fields[1].get<int>() - 1;
    when.tm_mday = fields[2];
    when.tm_hour = fields[3];
    when.tm_min = fields[4];
    when.tm_sec = fields[5];
    when.tm_isdst = -1;
    return std::mktime(&when);
}

/// The templates in llama.cpp's own test, in order.
std::vector<std::string> templates_written_out() {
    const std::string source = read_file(fs::path(KVSCOPE_LLAMA_SOURCE) / "tests/test-chat-template.cpp");
    constexpr std::string_view mark = ".template_str= */ \"";
    std::vector<std::string> out;
    for (size_t at = 0; (at = source.find(mark, at)) != std::string::npos;) {
        at += mark.size();
        std::string literal = "\"";
        for (; source[at] != '"'; ++at) {
            if (source[at] == '\\' && source[at + 1] == '\'') continue;
            if (source[at] == '\\') literal += source[at++];
            literal += source[at];
        }
        out.push_back(json::parse(literal + "\"").get<std::string>());
    }
    return out;
}

ChatTemplate make(std::string source) {
    return ChatTemplate(std::move(source), {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
                        "model/tokenizer_config.json");
}

const std::vector<Message> hello{{"user", "Hello"}};

}  // namespace

TEST_CASE("Chat templates render the same text as transformers") {
    const json golden = json::parse(read_file(fs::path(KVSCOPE_TEST_DATA) / "checkpoint/chat_templates.json"));
    const std::time_t now = local_time(golden.at("now"));
    const std::vector<std::string> written_out = templates_written_out();
    size_t compared = 0, refused = 0;
    for (const auto& [name, one] : golden.at("cases").items()) {
        INFO("template: " << name);
        std::string source;
        if (one.contains("template")) {
            source = one.at("template");
        } else if (const size_t number = name.find('#'); number != std::string::npos) {
            source = written_out.at(std::stoul(name.substr(number + 1)));
        } else {
            source = read_file(fs::path(KVSCOPE_LLAMA_SOURCE) / name);
        }
        std::map<std::string, std::string> special;
        for (const char* token : {"bos_token", "eos_token"}) {
            if (!one.at(token).is_null()) special[token] = one.at(token);
        }
        const ChatTemplate chat_template(source, special, name);
        for (const auto& [conversation, row] : one.at("rows").items()) {
            INFO("conversation: " << conversation);
            const json& described = golden.at("conversations").at(conversation);
            std::vector<Message> messages;
            for (const json& message : described.at("messages"))
                messages.push_back({message.at("role"), message.at("content")});
            auto render = [&] { return chat_template.render(messages, described.at("add_generation_prompt"), now); };
            if (row.contains("text")) {
                CHECK(render() == row.at("text").get<std::string>());
                ++compared;
            } else if (row.contains("checksum")) {
                CHECK(checksum(render()) == row.at("checksum").get<std::string>());
                ++compared;
            } else if (const std::string error = row.at("error"); error.find("alternate") != std::string::npos) {
                CHECK_THROWS_WITH(render(), Catch::Contains("refuses these messages: " + error));
                ++refused;
            }
        }
    }
    CHECK(compared > 500);
    CHECK(refused > 10);
}

TEST_CASE("The default model's template, with its default system message") {
    const auto chat_template = ChatTemplate::of_model(KVSCOPE_DEFAULT_MODEL);
    REQUIRE(chat_template);
    CHECK(chat_template->special_tokens().at("bos_token") == "<|im_start|>");
    CHECK(chat_template->special_tokens().at("eos_token") == "<|im_end|>");
    CHECK(chat_template->render(hello, true) ==
          "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
          "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("Chat templates are found in all files of a Hugging Face directory") {
    const TemporaryFolder folder;
    CHECK_FALSE(ChatTemplate::of_model(folder));
    write_file(folder / "tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": null})");
    CHECK_FALSE(ChatTemplate::of_model(folder));

    write_file(folder / "tokenizer_config.json",
               R"({"bos_token": {"content": "<s>"}, "chat_template": "{{ bos_token }}one"})");
    CHECK(ChatTemplate::of_model(folder)->render(hello, true) == "<s>one");
    write_file(folder / "tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "two"},
                                                                {"name": "default", "template": "three{{ eos_token }}"}]})");
    CHECK(ChatTemplate::of_model(folder)->render(hello, true) == "three");
    write_file(folder / "special_tokens_map.json", R"({"eos_token": {"content": "</s>", "lstrip": false}})");
    CHECK(ChatTemplate::of_model(folder)->render(hello, true) == "three</s>");
    write_file(folder / "chat_template.jinja", "four\n");
    CHECK(ChatTemplate::of_model(folder)->render(hello, true) == "four");
    CHECK(ChatTemplate::of_model(folder)->source() == "four\n");

    fs::remove(folder / "chat_template.jinja");
    write_file(folder / "tokenizer_config.json", R"({"chat_template": {"default": 3}})");
    CHECK_THROWS_WITH(
        ChatTemplate::of_model(folder),
        Catch::Contains("tokenizer_config.json: chat_template.default: expected a string, found a number"));
    write_file(folder / "tokenizer_config.json", R"({"chat_template": )");
    CHECK_THROWS_WITH(ChatTemplate::of_model(folder), Catch::Contains("tokenizer_config.json: is truncated"));
    write_file(folder / "tokenizer_config.json", R"({"chat_template": "{% if %}"})");
    CHECK_THROWS_WITH(ChatTemplate::of_model(folder),
                      Catch::Contains("tokenizer_config.json: its chat template is not valid Jinja: "));
}

TEST_CASE("Invalid templates cause an error that names the model and the reason") {
    using Catch::Contains;
    auto message = [](const std::string& source) -> std::string {
        try {
            return "rendered " + make(source).render(hello, true);
        } catch (const CheckpointError& error) {
            return error.what();
        }
    };
    CHECK_THAT(message("{{ raise_exception('no system role') }}"),
               Catch::Equals("model/tokenizer_config.json: its chat template refuses these messages: no system role"));
    CHECK_THAT(message("{% for m in messages %}{{ m.content }}"), Contains("is not valid Jinja"));
    CHECK_THAT(message("{{ 'unclosed"), Contains("is not valid Jinja"));
    CHECK_THAT(message("{# unclosed"), Contains("is not valid Jinja: missing end of comment"));
    CHECK_THAT(message("{% frobnicate %}"), Contains("is not valid Jinja"));
    CHECK_THAT(message("\n\n{{ messages | no_such_filter }}"), Contains("chat template failed: "));
    CHECK_THAT(message("{{ no_such_function(1) }}"), Contains("chat template failed"));
    CHECK_THAT(message("\xFF{{ 1 }}"), Contains("it is not valid UTF-8"));
    CHECK_THAT(message(std::string(2 << 20, 'a')), Contains("larger than 1 MiB"));

    auto repeated = [](const char* text, int times) {
        std::string out;
        for (int i = 0; i < times; ++i) out += text;
        return out;
    };
    const int many = 50'000;
    CHECK_THAT(message("{{ " + repeated("(", many) + "1" + repeated(")", many) + " }}"), Contains("nested more than"));
    CHECK_THAT(message(repeated("{% if true %}", many / 10) + repeated("{% endif %}", many / 10)),
               Contains("nested more than"));
    CHECK_THAT(message("{% if 0 %}" + repeated("{% elif 0 %}", many) + "{% endif %}"), Contains("nested more than"));
    CHECK_THAT(message("{{ 1" + repeated(" + 1", many) + " }}"), Contains("more than 2000 parts"));
    CHECK_THAT(message("{{ " + repeated("not ", many) + "1 }}"), Contains("more than 2000 parts"));
    CHECK_THAT(message("{{ a" + repeated(".a", many) + " }}"), Contains("more than 2000 parts"));
    CHECK_THAT(message("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
               Contains("macros call each other more than"));
    CHECK_THAT(message("{% for i in range(1000000000) %}x{% endfor %}"), Contains("range() beyond"));
    CHECK_THAT(
        message("{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}{{ f(60) }}"),
        Contains("rendered 40393837"));
    CHECK(message("a {% if true %}b{% endif %}") == "rendered a b");
    CHECK(message("a{% if true %}b{% endif %}") == "rendered ab");
    CHECK(message("") == "rendered ");
}

TEST_CASE("Messages are stripped as in Python") {
    const auto strip = make("[{{ messages[0].content | trim }}]");
    const auto keep = make("[{{ messages[0].content }}]");
    const auto left_alone = make("[{{ messages[0].content.lstrip() }}]");
    for (const char* text : {"\u3000a b\u00a0", "\x1f\u2028a b\n\u2003 ", " a b\u0085"}) {
        const std::vector<Message> messages{{"user", text}};
        CHECK(strip.render(messages, true) == "[a b]");
        CHECK(keep.render(messages, true) == "[" + messages[0].content + "]");
        CHECK(left_alone.render(messages, true).starts_with("[a b"));
        CHECK(left_alone.render(messages, true).size() > 5);
    }
    CHECK(strip.render({{Message{"user", "\u3000"}}}, true) == "[]");
    CHECK(strip.render({{Message{"user", "a\u200b"}}}, true) == "[a\u200b]");
}

TEST_CASE("Templates are stopped at their limits, and the message names file and limit") {
    using Catch::Contains;
    using Catch::StartsWith;
    const auto message = [](const std::string& source) -> std::string {
        try {
            return "rendered " + make(source).render(hello, true);
        } catch (const CheckpointError& error) {
            return error.what();
        }
    };
    const std::string file = "model/tokenizer_config.json: its chat template was stopped: ";
    const auto says = [](const char* limit) { return Contains(kvscope::tests::sanitized ? "" : limit); };
    SECTION("time") {
        CHECK_THAT(message("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
                   Contains(file) && says("longer than the limit of"));
    }
    SECTION("memory in one allocation") {
        CHECK_THAT(message("{{ 'x' * 10000000000 }}"), Contains(file) && says("more than 1024 MB of memory"));
        CHECK_THAT(message("{{ 'a\nb' | indent(1000000000) }}"), Contains(file) && says("1024 MB"));
    }
    SECTION("memory by repeated doubling") {
        CHECK_THAT(
            message("{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"),
            Contains(file) && says("1024 MB"));
    }
    SECTION("depth") {
        CHECK_THAT(message("{% set l = [] %}{% set _ = l.append(l) %}{{ l }}"),
                   Contains(file) && says("nesting exceeds 64 MB of stack"));
        // The nesting is less deep, so the template may be rendered.
        CHECK_THAT(message("{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}"
                           "{{ n.x | tojson }}"),
                   Contains("model/tokenizer_config.json: its chat template ") || StartsWith("rendered "));
    }
}

TEST_CASE("A stop request ends a template that never terminates") {
    const auto endless = make("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
    std::stop_source stop;
    const std::jthread stopping([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        stop.request_stop();
    });
    CHECK_THROWS_AS(endless.render(hello, true, std::nullopt, stop.get_token()), kvscope::Stopped);
}

TEST_CASE("Templates render from many threads in parallel") {
    const auto source = make("[{{ messages[0].content }}]");
    std::vector<std::string> rendered(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < rendered.size(); ++i) {
        threads.emplace_back([&, i] {
            const std::vector<Message> messages{{"user", std::string(100'000, static_cast<char>('a' + i))}};
            rendered[i] = source.render(messages, true);
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < rendered.size(); ++i)
        CHECK(rendered[i] == "[" + std::string(100'000, static_cast<char>('a' + i)) + "]");
}

TEST_CASE("The start of the question is found") {
    auto split = [](const RenderedPrompt& prompt) {
        return std::pair(prompt.text.substr(0, prompt.question_begin), prompt.text.substr(prompt.question_begin));
    };
    using Parts = std::pair<std::string, std::string>;

    CHECK(split(render_prompt(std::nullopt, "context", "question?")) == Parts("context\n\n", "question?"));
    CHECK(split(render_prompt(std::nullopt, "context", "")) == Parts("context", ""));

    const auto chatml = make("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>");
    CHECK(split(render_prompt(chatml, "a b", "b?")) == Parts("<|user|>a b\n\n", "b?<|end|><|assistant|>"));
    CHECK(split(render_prompt(chatml, "a b", "")) == Parts("<|user|>a b<|end|><|assistant|>", ""));
    CHECK(split(render_prompt(chatml, "", "b?")) == Parts("<|user|>\n\n", "b?<|end|><|assistant|>"));

    const auto trimming = make("[INST] {{ messages[0].content | trim }} [/INST]");
    CHECK(split(render_prompt(trimming, " \n a", "b? \n")) == Parts("[INST] a\n\n", "b? [/INST]"));
    CHECK(split(render_prompt(trimming, " \u3000 a", "\n b?")) == Parts("[INST] a\n\n", "\n b? [/INST]"));

    const auto twice = make("{{ messages[0].content }}|{{ messages[0].content }}");
    CHECK(split(render_prompt(twice, "a", "b")) == Parts("a\n\nb|a\n\n", "b"));

    using Catch::Contains;
    CHECK_THROWS_WITH(render_prompt(make("{{ messages[0].content | upper }}"), "context", "question?"),
                      Contains("changes the prompt's text"));
    CHECK_THROWS_WITH(render_prompt(trimming, "context", " \n "), Contains("changes the prompt's text"));
    CHECK_THROWS_AS(render_prompt(chatml, "\xFF", "question?"), std::invalid_argument);
    CHECK_THROWS_AS(render_prompt(chatml, "context", "\xFF"), std::invalid_argument);
    CHECK_THROWS_WITH(render_prompt(make("{{ raise_exception('no') }}"), "context", ""),
                      Contains("refuses these messages: no"));

    const auto smollm = ChatTemplate::of_model(KVSCOPE_DEFAULT_MODEL);
    const auto [before, after] = split(render_prompt(smollm, "Paris is the capital.", "Of what?"));
    CHECK(before.ends_with("<|im_start|>user\nParis is the capital.\n\n"));
    CHECK(after == "Of what?<|im_end|>\n<|im_start|>assistant\n");
}
