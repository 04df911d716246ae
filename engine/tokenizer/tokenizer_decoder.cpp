#include "engine/tokenizer/tokenizer_decoder.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "common/utf8.h"
#include "engine/tokenizer/tokenizer_byte_alphabet.h"
#include "engine/tokenizer/tokenizer_regex.h"

namespace kvscope::checkpoint {
namespace {

class Sequence final : public Decoder {
 public:
    explicit Sequence(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
    std::vector<std::string> apply(std::vector<std::string> tokens, TokenizerLimits& limits) const override {
        for (const auto& step : steps_) {
            tokens = step->apply(std::move(tokens), limits);
            limits.step();
            size_t bytes = 0;
            for (const std::string& token : tokens) bytes += token.size();
            limits.require_length(bytes);
        }
        return tokens;
    }
    std::string piece(std::string_view token, TokenizerLimits& limits) const override {
        std::string out(token);
        for (const auto& step : steps_) {
            out = step->piece(out, limits);
            limits.step();
        }
        return out;
    }

 private:
    std::vector<std::unique_ptr<Decoder>> steps_;
};

class ByteLevel final : public Decoder {
 public:
    std::vector<std::string> apply(std::vector<std::string> tokens, TokenizerLimits& limits) const override {
        std::string bytes;
        for (const std::string& token : tokens) bytes += piece(token, limits);
        return {utf8_lossy(bytes)};
    }
    // Tokens with other characters, such as added tokens, are kept unchanged.
    std::string piece(std::string_view token, TokenizerLimits&) const override {
        std::string bytes;
        for (size_t at = 0; at < token.size();) {
            const Utf8Character step = decode_utf8_character(token, at);
            const int byte = step.is_valid ? ByteAlphabet::instance().byte_of(step.code) : -1;
            if (byte < 0) return std::string(token);
            bytes += static_cast<char>(byte);
            at += step.bytes;
        }
        return bytes;
    }
};

class ByteFallback final : public Decoder {
 public:
    std::vector<std::string> apply(std::vector<std::string> tokens, TokenizerLimits&) const override {
        std::vector<std::string> out;
        std::string bytes;
        auto flush = [&] {
            if (bytes.empty()) return;
            if (first_invalid_utf8(bytes) == std::string_view::npos) {
                out.push_back(bytes);
            } else {
                for (size_t i = 0; i < bytes.size(); ++i) out.emplace_back("\uFFFD");
            }
            bytes.clear();
        };
        for (std::string& token : tokens) {
            if (const auto byte = byte_of(token)) {
                bytes += *byte;
            } else {
                flush();
                out.push_back(std::move(token));
            }
        }
        flush();
        return out;
    }
    std::string piece(std::string_view token, TokenizerLimits&) const override {
        const auto byte = byte_of(token);
        return byte ? std::string(1, *byte) : std::string(token);
    }

 private:
    static std::optional<char> byte_of(std::string_view token) {
        if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
        uint8_t byte = 0;
        const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
        if (error != std::errc() || end != token.data() + 5) return std::nullopt;
        return static_cast<char>(byte);
    }
};

class Metaspace final : public Decoder {
 public:
    Metaspace(std::string replacement, bool prepends) : replacement_(std::move(replacement)), prepends_(prepends) {}
    std::vector<std::string> apply(std::vector<std::string> tokens, TokenizerLimits&) const override {
        for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = replaced(tokens[i], i == 0 && prepends_ ? "" : " ");
        return tokens;
    }
    std::string piece(std::string_view token, TokenizerLimits&) const override { return replaced(token, " "); }

 private:
    std::string replaced(std::string_view token, std::string_view by) const {
        std::string out;
        for (size_t at = 0; at < token.size();) {
            if (token.substr(at).starts_with(replacement_)) {
                out += by;
                at += replacement_.size();
            } else {
                out += token[at++];
            }
        }
        return out;
    }

    std::string replacement_;
    bool prepends_;
};

class Replace final : public Decoder {
 public:
    Replace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
    std::vector<std::string> apply(std::vector<std::string> tokens, TokenizerLimits& limits) const override {
        size_t bytes = 0;
        for (std::string& token : tokens) {
            token = piece(token, limits);
            limits.require_length(bytes += token.size());
        }
        return tokens;
    }
    // An earlier step may produce single bytes, to which the pattern does not apply.
    std::string piece(std::string_view token, TokenizerLimits& limits) const override {
        if (first_invalid_utf8(token) != std::string_view::npos) return std::string(token);
        std::string out;
        for (const Span& span : pattern_.cut(token, limits)) {
            out += span.matched ? std::string_view(content_) : token.substr(span.begin, span.end - span.begin);
            limits.require_length(out.size());
        }
        return out;
    }

 private:
    Regex pattern_;
    std::string content_;
};

class Strip final : public Decoder {
 public:
    Strip(std::string content, size_t start, size_t stop) : content_(std::move(content)), start_(start), stop_(stop) {}
    std::vector<std::string> apply(std::vector<std::string> tokens, TokenizerLimits&) const override {
        for (std::string& token : tokens) {
            std::string_view rest = token;
            for (size_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
            for (size_t i = 0; i < stop_ && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
            token = std::string(rest);
        }
        return tokens;
    }
    std::string piece(std::string_view token, TokenizerLimits&) const override { return std::string(token); }

 private:
    std::string content_;
    size_t start_, stop_;
};

class Fuse final : public Decoder {
 public:
    std::vector<std::string> apply(std::vector<std::string> tokens, TokenizerLimits&) const override {
        std::string all;
        for (const std::string& token : tokens) all += token;
        return {all};
    }
    std::string piece(std::string_view token, TokenizerLimits&) const override { return std::string(token); }
};

std::unique_ptr<Decoder> make_metaspace(const JsonNode& node) {
    const std::string scheme =
        node.text_or("prepend_scheme", node.boolean_or("add_prefix_space", true) ? "always" : "never");
    const std::string replacement = node.text_or("replacement", "▁");
    if (replacement.empty()) node.at("replacement").fail("expected a single character");
    return std::make_unique<Metaspace>(replacement, scheme != "never");
}

std::unique_ptr<Decoder> make_strip(const JsonNode& node) {
    const std::string& content = node.at("content").text();
    const int64_t start = node.at("start").integer(), stop = node.at("stop").integer();
    if (content.empty()) node.at("content").fail("expected a character");
    if (start < 0 || stop < 0) node.fail("start and stop must not be negative");
    return std::make_unique<Strip>(content, static_cast<size_t>(start), static_cast<size_t>(stop));
}

}  // namespace

std::unique_ptr<Decoder> make_decoder(const JsonNode& node) {
    const std::string& type = node.at("type").text();
    if (type == "Sequence") return std::make_unique<Sequence>(node.at("decoders").each(make_decoder));
    if (type == "ByteLevel") return std::make_unique<ByteLevel>();
    if (type == "ByteFallback") return std::make_unique<ByteFallback>();
    if (type == "Metaspace") return make_metaspace(node);
    if (type == "Replace") return std::make_unique<Replace>(regex_of(node.at("pattern")), node.at("content").text());
    if (type == "Strip") return make_strip(node);
    if (type == "Fuse") return std::make_unique<Fuse>();
    node.fail(
        fmt::format("the decoder \"{}\" is not supported; supported are Sequence, ByteLevel, ByteFallback, "
                    "Metaspace, Replace, Strip, Fuse",
                    type));
}

}  // namespace kvscope::checkpoint
