#include "engine/tokenizer/tokenizer_normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "engine/files/utf8.h"
#include "engine/tokenizer/tokenizer_regex.h"
#include "engine/tokenizer/tokenizer_work.h"

namespace kvscope::checkpoint {
namespace {

class Sequence final : public Normalizer {
 public:
    explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
    std::string apply(std::string_view text) const override {
        std::string out(text);
        for (const auto& step : steps_) {
            out = step->apply(out);
            TokenizerWork::step();
            TokenizerWork::require_length(out.size());
        }
        return out;
    }

 private:
    std::vector<std::unique_ptr<Normalizer>> steps_;
};

class UnicodeForm final : public Normalizer {
 public:
    explicit UnicodeForm(int options) : options_(static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE)) {}
    std::string apply(std::string_view text) const override {
        const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
        if (ascii) return std::string(text);
        utf8proc_uint8_t* mapped = nullptr;
        const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                     static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_);
        const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, &std::free);
        if (length < 0)
            throw std::runtime_error(std::string("Unicode normalisation failed: ") + utf8proc_errmsg(length));
        return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
    }

 private:
    utf8proc_option_t options_;
};

class Lowercase final : public Normalizer {
 public:
    std::string apply(std::string_view text) const override {
        std::string out;
        out.reserve(text.size());
        for (size_t at = 0; at < text.size();) {
            const Utf8Step step = utf8_step(text, at);
            at += step.length;
            if (step.code_point == 0x130) {  // the one letter whose lower case is two code points
                out += "i\u0307";
            } else {
                append_utf8(out,
                            static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(step.code_point))));
            }
        }
        return out;
    }
};

class Prepend final : public Normalizer {
 public:
    explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
    std::string apply(std::string_view text) const override { return text.empty() ? "" : prefix_ + std::string(text); }

 private:
    std::string prefix_;
};

class Replace final : public Normalizer {
 public:
    Replace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
    std::string apply(std::string_view text) const override {
        std::string out;
        out.reserve(text.size());
        for (const Span& span : pattern_.cut(text)) {
            out += span.matched ? std::string_view(content_) : text.substr(span.begin, span.end - span.begin);
            TokenizerWork::require_length(out.size());
        }
        return out;
    }

 private:
    Regex pattern_;
    std::string content_;
};

class Strip final : public Normalizer {
 public:
    Strip(bool left, bool right) : left_(left), right_(right) {}
    std::string apply(std::string_view text) const override {
        size_t begin = text.size(), end = 0;
        for (size_t at = 0; at < text.size();) {
            const Utf8Step step = utf8_step(text, at);
            if (!is_white_space(step.code_point)) {
                begin = std::min(begin, at);
                end = at + step.length;
            }
            at += step.length;
        }
        if (!left_) begin = 0;
        if (!right_) end = text.size();
        return begin < end ? std::string(text.substr(begin, end - begin)) : "";
    }

 private:
    bool left_, right_;
};

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const JsonNode& node) {
    const std::string& type = node.at("type").text();
    if (type == "Sequence") {
        const JsonNode list = node.at("normalizers");
        std::vector<std::unique_ptr<Normalizer>> steps;
        for (size_t i = 0; i < list.size(); ++i) steps.push_back(make_normalizer(list[i]));
        return std::make_unique<Sequence>(std::move(steps));
    }
    if (type == "NFC") return std::make_unique<UnicodeForm>(UTF8PROC_COMPOSE);
    if (type == "NFD") return std::make_unique<UnicodeForm>(UTF8PROC_DECOMPOSE);
    if (type == "NFKC") return std::make_unique<UnicodeForm>(UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    if (type == "NFKD") return std::make_unique<UnicodeForm>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    if (type == "Lowercase") return std::make_unique<Lowercase>();
    if (type == "Prepend") return std::make_unique<Prepend>(node.at("prepend").text());
    if (type == "Replace") {
        return std::make_unique<Replace>(regex_of(node.at("pattern")), node.at("content").text());
    }
    if (type == "Strip") {
        return std::make_unique<Strip>(node.boolean_or("strip_left", true), node.boolean_or("strip_right", true));
    }
    node.fail(
        fmt::format("the normalizer \"{}\" is not supported; supported are Sequence, NFC, NFD, NFKC, NFKD, "
                    "Lowercase, Prepend, Replace, Strip",
                    type));
}

}  // namespace kvscope::checkpoint
