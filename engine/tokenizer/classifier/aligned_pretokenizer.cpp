#include "engine/tokenizer/classifier/aligned_pretokenizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <utility>

#include "common/utf8.h"
#include "engine/tokenizer/metaspace_options.h"

namespace kvscope::checkpoint {
namespace {

AlignedPreTokenizer sequence(std::vector<AlignedPreTokenizer> steps) {
    return [steps = std::move(steps)](const AlignedText& text, std::vector<AlignedText>& out, TokenizerLimits& limits) {
        std::vector<AlignedText> now{text}, next;
        for (const auto& step : steps) {
            next.clear();
            for (const AlignedText& part : now) {
                limits.step();
                step(part, next, limits);
            }
            now.swap(next);
        }
        for (AlignedText& part : now) out.push_back(std::move(part));
    };
}

bool is_punctuation(char32_t c) {
    if (c < 0x80) return c > 0x20 && c < 0x7F && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
        case UTF8PROC_CATEGORY_PC:
        case UTF8PROC_CATEGORY_PD:
        case UTF8PROC_CATEGORY_PS:
        case UTF8PROC_CATEGORY_PE:
        case UTF8PROC_CATEGORY_PI:
        case UTF8PROC_CATEGORY_PF:
        case UTF8PROC_CATEGORY_PO:
            return true;
        default:
            return false;
    }
}

/// Cuts at white space and removes it. With `punctuation_apart`, each punctuation mark is a word.
AlignedPreTokenizer white_space(bool punctuation_apart) {
    return [punctuation_apart](const AlignedText& text, std::vector<AlignedText>& out, TokenizerLimits&) {
        AlignedText word;
        auto finish = [&] {
            if (!word.empty()) out.push_back(std::exchange(word, {}));
        };
        for (const AlignedCharacter& c : text) {
            if (is_white_space(c.code_point)) {
                finish();
            } else if (punctuation_apart && is_punctuation(c.code_point)) {
                finish();
                out.push_back({c});
            } else {
                word.push_back(c);
            }
        }
        finish();
    };
}

/// Replaces spaces by a special character, adds this character at the start, and cuts before each of them.
AlignedPreTokenizer metaspace(const MetaspaceOptions& options) {
    return [options](const AlignedText& text, std::vector<AlignedText>& out, TokenizerLimits&) {
        AlignedText all;
        for (const AlignedCharacter& c : text) {
            const bool may_prepend = options.prepend == MetaspaceOptions::Prepend::always ||
                                     (options.prepend == MetaspaceOptions::Prepend::first && c.begin == 0);
            const bool is_space = c.code_point == ' ' || c.code_point == options.character;
            if (all.empty() && may_prepend && !is_space) all.push_back({options.character, c.begin, c.end});
            all.push_back({is_space ? options.character : c.code_point, c.begin, c.end});
        }
        size_t begin = 0;
        for (size_t i = 1; i <= all.size(); ++i) {
            if (i < all.size() && !(options.split && all[i].code_point == options.character)) continue;
            out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.begin() + static_cast<std::ptrdiff_t>(i));
            begin = i;
        }
    };
}

}  // namespace

AlignedPreTokenizer make_aligned_pre_tokenizer(const JsonNode& node) {
    const std::string& type = node.at("type").text();
    if (type == "Sequence") return sequence(node.at("pretokenizers").each(make_aligned_pre_tokenizer));
    if (type == "BertPreTokenizer") return white_space(true);
    if (type == "WhitespaceSplit") return white_space(false);
    if (type == "Metaspace") return metaspace(read_metaspace(node));
    node.fail(
        fmt::format("the pre-tokenizer \"{}\" is not supported for a token classifier; supported are Sequence, "
                    "BertPreTokenizer, WhitespaceSplit, Metaspace",
                    type));
}

}  // namespace kvscope::checkpoint
