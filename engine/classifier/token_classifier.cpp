#include "engine/classifier/token_classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "engine/tokenizer/tokenizer_characters.h"

namespace kvscope::engine {
namespace {

/// Gives probability 1 to every occurrence of `wanted`, except to parts of words.
void force(std::string_view text, std::string_view wanted, std::vector<float>& probabilities) {
    if (wanted.empty()) return;
    for (size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1)) {
        const size_t end = at + wanted.size();
        const bool begins_inside =
            checkpoint::starts_with_word(wanted) && checkpoint::ends_with_word(text.substr(0, at));
        const bool ends_inside = checkpoint::ends_with_word(wanted) && checkpoint::starts_with_word(text.substr(end));
        if (begins_inside || ends_inside) continue;
        std::fill(probabilities.begin() + static_cast<std::ptrdiff_t>(at),
                  probabilities.begin() + static_cast<std::ptrdiff_t>(end), 1.0f);
    }
}

}  // namespace

TokenClassifier::TokenClassifier(const std::filesystem::path& directory, Progress& progress)
    : TokenClassifier(directory, checkpoint::read_classifier_config(directory), progress) {}

TokenClassifier::TokenClassifier(const std::filesystem::path& directory, checkpoint::ClassifierConfig config,
                                 Progress& progress)
    : tokenizer_(directory), encoder_(directory, std::move(config), progress) {
    const int64_t n_embeddings = encoder_.config().vocab_size;
    if (tokenizer_.vocab_size() > n_embeddings)
        throw checkpoint::CheckpointError(
            directory,
            fmt::format(
                "the tokenizer has {} tokens, but the model has only {} embeddings; the two do not belong together",
                tokenizer_.vocab_size(), n_embeddings));
}

std::vector<Window> TokenClassifier::windows(std::span<const checkpoint::TextToken> tokens) const {
    const auto around = static_cast<int64_t>(tokenizer_.before().size() + tokenizer_.after().size());
    const auto room = static_cast<size_t>(std::max<int64_t>(1, encoder_.config().context_length() - around));
    const auto last_end = [&](size_t begin) {
        for (size_t end = begin + room; end > begin; --end) {
            const std::string& last = tokenizer_.spelling(tokens[end - 1].id);
            if (last == "." || last == "\n") return end;
        }
        for (size_t end = begin + room; end > begin; --end) {
            if (!tokenizer_.continues_word(tokens[end].id)) return end;
        }
        return begin + room;
    };
    std::vector<Window> windows;
    size_t begin = 0;
    while (tokens.size() - begin > room) {
        const size_t end = last_end(begin);
        windows.push_back({begin, end});
        begin = end;
    }
    if (begin < tokens.size()) windows.push_back({begin, tokens.size()});
    return windows;
}

std::vector<double> TokenClassifier::read(std::span<const checkpoint::TextToken> tokens) const {
    std::vector<int32_t> ids(tokenizer_.before().begin(), tokenizer_.before().end());
    for (const auto& token : tokens) ids.push_back(token.id);
    ids.insert(ids.end(), tokenizer_.after().begin(), tokenizer_.after().end());
    const at::Tensor probabilities = at::softmax(encoder_.logits(ids).to(at::kDouble), -1).contiguous();
    std::vector<double> keep;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const size_t row = tokenizer_.before().size() + i;
        keep.push_back(probabilities.const_data_ptr<double>()[row * checkpoint::ClassifierConfig::n_labels + 1]);
    }
    return keep;
}

std::vector<float> TokenClassifier::byte_probabilities(std::string_view text,
                                                       const policies::TokenClassifierSettings& how,
                                                       Progress& progress) const {
    const auto tokens = tokenizer_.encode(text, progress.stop_token());
    const auto windows = this->windows(tokens);
    std::vector<float> probabilities(text.size(), std::numeric_limits<float>::quiet_NaN());
    progress.begin("classify", static_cast<int64_t>(windows.size()), "windows");
    int64_t done = 0;
    for (const Window& window : windows) {
        progress.throw_if_stopped();
        const auto all = std::span(tokens).subspan(window.begin, window.end - window.begin);
        std::vector<double> keep = read(all);
        for (size_t i = 0; how.keep_digits && i < all.size(); ++i) {
            if (checkpoint::has_digit(text.substr(all[i].begin, all[i].end - all[i].begin))) keep[i] = 1.0;
        }
        for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
            end = begin + 1;
            double sum = keep[begin];
            uint32_t last_byte = all[begin].end;
            for (; end < all.size() && tokenizer_.continues_word(all[end].id); ++end) {
                sum += keep[end];
                last_byte = std::max(last_byte, all[end].end);
            }
            const double word = how.first_token ? keep[begin] : sum / static_cast<double>(end - begin);
            std::fill(probabilities.begin() + all[begin].begin, probabilities.begin() + last_byte,
                      static_cast<float>(word));
        }
        progress.advance(++done);
    }
    for (const std::string& wanted : how.force_tokens) force(text, wanted, probabilities);
    // Some tokenizers write a space as a separate token before the digits of a number.
    for (size_t i = 0; i + 1 < text.size(); ++i) {
        if (text[i] == ' ' && std::isnan(probabilities[i])) probabilities[i] = probabilities[i + 1];
    }
    return probabilities;
}

float mean_byte_probability(std::span<const float> of_bytes, size_t begin, size_t end) {
    double sum = 0;
    int64_t n = 0;
    for (size_t i = begin; i < end; ++i) {
        if (std::isnan(of_bytes[i])) continue;
        sum += of_bytes[i];
        ++n;
    }
    return n == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(n));
}

}  // namespace kvscope::engine
