#include "engine/tasks/ruler/prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "common/stopped.h"
#include "engine/common/engine_error.h"

namespace kvscope::engine::ruler {
namespace {

/// RULER repeats an unsuccessful draw of the smallest size forever.
constexpr int most_draws_of_smallest_size = 200;

}  // namespace

int64_t SizeSearch::tokens_at(int64_t size, const Draw& draw) const {
    throw_if_stopped(request_.stop);
    const auto prompt = draw(size);
    if (!prompt)
        throw UsageError(
            fmt::format("RULER's script for {} fails with the seed {} and the length {}: change --seed or --lengths",
                        request_.name, request_.seed, length_));
    return request_.count_tokens(prompt->text());
}

int64_t SizeSearch::greatest_fitting(int64_t upper, const Draw& draw, int64_t n_more) const {
    int64_t low = step_, high = upper, best = step_;
    while (low <= high) {
        const int64_t size = (low + high) / 2;
        if (tokens_at(size, draw) + n_more + n_new_ <= length_) {
            best = size;
            low = size + 1;
        } else {
            high = size - 1;
        }
    }
    return best;
}

int64_t SizeSearch::upper_bound(const Draw& draw) const {
    const double tokens_of_one = static_cast<double>(tokens_at(step_, draw)) / static_cast<double>(step_);
    return std::max(static_cast<int64_t>(static_cast<double>(length_) / tokens_of_one * 3), 2 * step_);
}

RulerPrompt SizeSearch::draw_fitting(int64_t size, const Draw& draw) const {
    int64_t smallest = std::numeric_limits<int64_t>::max();
    for (int n_smallest = 0; n_smallest < most_draws_of_smallest_size;) {
        throw_if_stopped(request_.stop);
        auto prompt = draw(size);
        if (prompt) {
            prompt->length = request_.count_tokens(prompt->text()) + n_new_;
            if (prompt->length <= length_) return std::move(*prompt);
            smallest = std::min(smallest, prompt->length);
        }
        if (size > step_)
            size -= step_;
        else
            ++n_smallest;
    }
    const std::string needed =
        smallest == std::numeric_limits<int64_t>::max() ? "more" : fmt::format("at least {}", smallest);
    if (text_ == Text::example)
        throw UsageError(
            fmt::format("--subsets: RULER's {} begins with an example of at most {} tokens, but with this model's "
                        "tokenizer, the example has {}: omit this subset",
                        request_.name, length_, needed));
    throw UsageError(fmt::format(
        "--lengths: expected {} tokens for the smallest prompt of RULER's {} and its answer, found {}: use a longer "
        "length, or omit this subset",
        needed, request_.name, length_));
}

std::string filled(std::string_view text, std::initializer_list<std::string_view> values) {
    std::string out;
    const auto* value = values.begin();
    for (size_t at = 0; at < text.size();) {
        const size_t place = value == values.end() ? std::string_view::npos : text.find("{}", at);
        out += text.substr(at, place - at);
        if (place == std::string_view::npos) break;
        out += *value++;
        at = place + 2;
    }
    return out;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
    return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace kvscope::engine::ruler
