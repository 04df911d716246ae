#include "engine/tokenizer/tokenizer_normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "common/utf8.h"
#include "engine/tokenizer/tokenizer_regex.h"

namespace kvscope::checkpoint {
namespace {

Normalizer sequence(std::vector<Normalizer> steps) {
    return [steps = std::move(steps)](TracedView text, TokenizerLimits& limits) {
        TracedText out(text.ends != nullptr);
        out.append(text);
        for (const auto& step : steps) {
            out = step(out.view(), limits);
            limits.step();
            limits.require_length(out.size());
        }
        return out;
    };
}

std::string mapped(std::string_view text, utf8proc_option_t options) {
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                 static_cast<utf8proc_ssize_t>(text.size()), &mapped, options);
    const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, &std::free);
    if (length < 0) throw std::runtime_error(std::string("Unicode normalization failed: ") + utf8proc_errmsg(length));
    return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
}

size_t grapheme_end(std::string_view text, size_t begin) {
    utf8proc_int32_t state = 0;
    Utf8Character last = decode_utf8_character(text, begin);
    size_t end = begin + last.bytes;
    while (end < text.size()) {
        const Utf8Character next = decode_utf8_character(text, end);
        if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code),
                                             static_cast<utf8proc_int32_t>(next.code), &state))
            break;
        end += next.bytes;
        last = next;
    }
    return end;
}

/// Maps each normalized grapheme to its original. Graphemes that form one, such as ㄱ and ㅏ in 가, are mapped as a
/// unit.
void trace(TracedView text, const std::string& whole, utf8proc_option_t options, TracedText& out,
           TokenizerLimits& limits) {
    const auto is_ascii = [&](size_t at) { return static_cast<uint8_t>(text.text[at]) < 0x80; };
    const size_t size = text.text.size();
    TracedText traced(true);
    for (size_t begin = 0; begin < size;) {
        size_t end = grapheme_end(text.text, begin);
        std::string becomes = mapped(text.text.substr(begin, end - begin), options);
        while (end < size && !(is_ascii(end - 1) && is_ascii(end))) {
            limits.step();
            const size_t next = grapheme_end(text.text, end);
            std::string both = mapped(text.text.substr(begin, next - begin), options);
            if (both == becomes + mapped(text.text.substr(end, next - end), options)) break;
            becomes = std::move(both);
            end = next;
        }
        limits.step();
        const TracedView part = text.part(begin, end);
        if (becomes == part.text)
            traced.append(part);
        else
            traced.append(becomes, part.end_of(end - begin - 1));
        begin = end;
    }
    if (traced.view().text == whole)
        out.append(traced.view());
    else
        out.append(whole, text.end_of(size - 1));  // parts unknown: maps to the whole text
}

Normalizer unicode_form(int form) {
    const auto options = static_cast<utf8proc_option_t>(form | UTF8PROC_STABLE);
    return [options](TracedView text, TokenizerLimits& limits) {
        TracedText out(text.ends != nullptr);
        const bool ascii =
            std::all_of(text.text.begin(), text.text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
        const std::string whole = ascii ? std::string() : mapped(text.text, options);
        if (ascii || whole == text.text) {
            out.append(text);
        } else if (!text.ends) {
            out.append(whole, 0);
        } else {
            trace(text, whole, options, out, limits);
        }
        return out;
    };
}

TracedText lower_cased(TracedView text, TokenizerLimits&) {
    TracedText out(text.ends != nullptr);
    out.reserve(text.text.size());
    std::string lower;
    for (size_t at = 0; at < text.text.size();) {
        const Utf8Character step = decode_utf8_character(text.text, at);
        lower.clear();
        if (step.code == 0x130) {  // the only letter whose lower case has two code points
            lower = "i\u0307";
        } else {
            append_utf8(lower, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(step.code))));
        }
        out.append(lower, text.end_of(at));
        at += step.bytes;
    }
    return out;
}

Normalizer prepend(const std::string& prefix) {
    return [prefix](TracedView text, TokenizerLimits&) {
        TracedText out(text.ends != nullptr);
        // As in `tokenizers`, the prefix belongs to the first character.
        if (!text.text.empty()) out.append(prefix, text.end_of(0));
        out.append(text);
        return out;
    };
}

Normalizer replace(const Regex& pattern, const std::string& content) {
    return [pattern, content](TracedView text, TokenizerLimits& limits) {
        TracedText out(text.ends != nullptr);
        out.reserve(text.text.size());
        for (const Span& span : pattern.cut(text.text, limits)) {
            if (span.matched)
                out.append(content, span.begin < span.end ? text.end_of(span.end - 1) : 0);
            else
                out.append(text.part(span.begin, span.end));
            limits.require_length(out.size());
        }
        return out;
    };
}

Normalizer strip(bool left, bool right) {
    return [left, right](TracedView text, TokenizerLimits&) {
        size_t begin = text.text.size(), end = 0;
        for (size_t at = 0; at < text.text.size();) {
            const Utf8Character step = decode_utf8_character(text.text, at);
            if (!is_white_space(step.code)) {
                begin = std::min(begin, at);
                end = at + step.bytes;
            }
            at += step.bytes;
        }
        if (!left) begin = 0;
        if (!right) end = text.text.size();
        TracedText out(text.ends != nullptr);
        if (begin < end) out.append(text.part(begin, end));
        return out;
    };
}

}  // namespace

Normalizer make_normalizer(const JsonNode& node) {
    const std::string& type = node.at("type").text();
    if (type == "Sequence") return sequence(node.at("normalizers").each(make_normalizer));
    if (type == "NFC") return unicode_form(UTF8PROC_COMPOSE);
    if (type == "NFD") return unicode_form(UTF8PROC_DECOMPOSE);
    if (type == "NFKC") return unicode_form(UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    if (type == "NFKD") return unicode_form(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    if (type == "Lowercase") return lower_cased;
    if (type == "Prepend") return prepend(node.at("prepend").text());
    if (type == "Replace") return replace(regex_of(node.at("pattern")), node.at("content").text());
    if (type == "Strip") return strip(node.boolean_or("strip_left", true), node.boolean_or("strip_right", true));
    node.fail(
        fmt::format("the normalizer \"{}\" is not supported; supported are Sequence, NFC, NFD, NFKC, NFKD, "
                    "Lowercase, Prepend, Replace, Strip",
                    type));
}

}  // namespace kvscope::checkpoint
