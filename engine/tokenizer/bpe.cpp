#include "engine/tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "common/utf8.h"

namespace kvscope::checkpoint {
namespace {

constexpr size_t longest_cached_word = 256;

size_t count_code_points(std::string_view text) {
    size_t count = 0;
    for (size_t at = 0; at < text.size(); at += decode_utf8_character(text, at).bytes) ++count;
    return count;
}

}  // namespace

Bpe::MergeTable::MergeTable(size_t count) {
    const size_t slots = std::bit_ceil(std::max<size_t>(16, count * 2));
    entries_.resize(slots);
    shift_ = 64 - std::countr_zero(slots);
}

void Bpe::MergeTable::set(int32_t left, int32_t right, uint32_t rank, int32_t merged) {
    const uint64_t pair = pair_of(left, right);
    size_t slot = slot_of(pair);
    while (entries_[slot].pair != empty && entries_[slot].pair != pair) slot = (slot + 1) & (entries_.size() - 1);
    entries_[slot] = {pair, rank, merged};
}

const Bpe::MergeTable::Entry* Bpe::MergeTable::find(int32_t left, int32_t right) const {
    const uint64_t pair = pair_of(left, right);
    for (size_t slot = slot_of(pair);; slot = (slot + 1) & (entries_.size() - 1)) {
        if (entries_[slot].pair == pair) return &entries_[slot];
        if (entries_[slot].pair == empty) return nullptr;
    }
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the tokens are moved
Bpe::Bpe(Vocabulary vocabulary, const Merges& merges, BpeOptions options)
    : merges_(merges.size()), options_(std::move(options)) {
    ids_.reserve(vocabulary.size());
    for (auto& [token, id] : vocabulary) ids_.emplace(std::move(token), id);

    const size_t prefix_length = count_code_points(options_.continuing_subword_prefix);
    for (size_t rank = 0; rank < merges.size(); ++rank) {
        const auto& [left, right] = merges[rank];
        size_t cut = 0;  // bytes of the second part's prefix, which the result omits
        for (size_t i = 0; i < prefix_length && cut < right.size(); ++i) cut += decode_utf8_character(right, cut).bytes;
        const std::string result = left + right.substr(cut);
        const auto left_id = id_of(left), right_id = id_of(right), merged_id = id_of(result);
        const std::string* missing = !left_id ? &left : !right_id ? &right : !merged_id ? &result : nullptr;
        if (missing != nullptr) {
            throw std::runtime_error(
                fmt::format("merge {} (\"{}\" with \"{}\") names \"{}\", which is not in the vocabulary", rank, left,
                            right, *missing));
        }
        merges_.set(*left_id, *right_id, static_cast<uint32_t>(rank), *merged_id);
    }

    if (options_.unknown_token) {
        unknown_ = id_of(*options_.unknown_token);
        if (!unknown_) {
            throw std::runtime_error(
                fmt::format("the unknown token \"{}\" is not in the vocabulary", *options_.unknown_token));
        }
    }
    for (int byte = 0; byte < 256; ++byte) byte_tokens_[byte] = id_of(fmt::format("<0x{:02X}>", byte)).value_or(-1);
    for (char32_t c = 0; c < characters_.size(); ++c) {
        std::string spelling;
        append_utf8(spelling, c);
        characters_[c] = id_of(spelling).value_or(-1);
    }
}

std::optional<int32_t> Bpe::id_of(std::string_view token) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
}

void Bpe::Encoder::encode(std::string_view word, std::vector<int32_t>& out, std::vector<uint32_t>* ends) {
    if (word.empty()) return;
    if (bpe_.options_.ignore_merges) {
        if (const auto id = bpe_.id_of(word)) {
            out.push_back(*id);
            if (ends) ends->push_back(static_cast<uint32_t>(word.size()));
            return;
        }
    }
    const bool cacheable = word.size() <= longest_cached_word;
    if (cacheable) {
        if (const auto hit = seen_.find(word); hit != seen_.end()) {
            const auto [first, count] = hit->second;
            out.insert(out.end(), cached_.begin() + first, cached_.begin() + first + count);
            if (ends) ends->insert(ends->end(), cached_ends_.begin() + first, cached_ends_.begin() + first + count);
            return;
        }
    }
    cut_into_symbols(word);
    merge();
    const auto begin = static_cast<uint32_t>(cached_.size());
    for (int32_t at = symbols_.empty() ? -1 : 0; at >= 0; at = symbols_[at].next) {
        const Symbol& symbol = symbols_[at];
        out.push_back(symbol.id);
        if (ends) ends->push_back(symbol.end);
        if (!cacheable) continue;
        cached_.push_back(symbol.id);
        cached_ends_.push_back(symbol.end);
    }
    if (cacheable) seen_.emplace(word, std::pair(begin, static_cast<uint32_t>(cached_.size()) - begin));
}

void Bpe::Encoder::add_symbol(int32_t id, size_t end) {
    const auto at = static_cast<int32_t>(symbols_.size());
    if (at > 0) symbols_.back().next = at;
    symbols_.push_back({id, static_cast<uint32_t>(end), at - 1, -1, true});
}

void Bpe::Encoder::cut_into_symbols(std::string_view word) {
    const BpeOptions& options = bpe_.options_;
    const bool decorated = !options.continuing_subword_prefix.empty() || !options.end_of_word_suffix.empty();
    symbols_.clear();
    size_t pending_unknown = 0;  // end of the pending unknown token
    auto flush_unknown = [&] {
        if (pending_unknown > 0) add_symbol(*bpe_.unknown_, pending_unknown);
        pending_unknown = 0;
    };

    for (size_t at = 0; at < word.size();) {
        const Utf8Character step = decode_utf8_character(word, at);
        std::string_view character = word.substr(at, step.bytes);
        std::optional<int32_t> id;
        if (decorated) {
            spelling_.clear();
            if (at > 0) spelling_ += options.continuing_subword_prefix;
            spelling_ += character;
            if (at + step.bytes == word.size()) spelling_ += options.end_of_word_suffix;
            character = spelling_;
            id = bpe_.id_of(character);
        } else if (step.code < bpe_.characters_.size()) {
            if (bpe_.characters_[step.code] >= 0) id = bpe_.characters_[step.code];
        } else {
            id = bpe_.id_of(character);
        }
        at += step.bytes;

        if (id) {
            flush_unknown();
            add_symbol(*id, at);
            continue;
        }
        if (options.byte_fallback && std::all_of(character.begin(), character.end(), [&](char byte) {
                return bpe_.byte_tokens_[static_cast<uint8_t>(byte)] >= 0;
            })) {
            for (const char byte : character) add_symbol(bpe_.byte_tokens_[static_cast<uint8_t>(byte)], at);
            continue;
        }
        if (bpe_.unknown_) {
            if (!options.fuse_unknown) flush_unknown();
            pending_unknown = at;
        }
    }
    flush_unknown();
}

void Bpe::Encoder::add_candidate(int32_t left, int32_t right) {
    const MergeTable::Entry* entry = bpe_.merges_.find(symbols_[left].id, symbols_[right].id);
    if (entry != nullptr) heap_.push_back({entry->rank, left, entry->merged});
}

void Bpe::Encoder::merge() {
    heap_.clear();
    for (size_t right = 1; right < symbols_.size(); ++right) {
        add_candidate(static_cast<int32_t>(right) - 1, static_cast<int32_t>(right));
    }
    std::make_heap(heap_.begin(), heap_.end());

    for (uint32_t taken = 0; !heap_.empty(); ++taken) {
        if (taken % 1024 == 1023) limits_.step();
        std::pop_heap(heap_.begin(), heap_.end());
        const Candidate top = heap_.back();
        heap_.pop_back();

        Symbol& left = symbols_[top.left];
        if (!left.alive || left.next < 0) continue;
        const int32_t right_at = left.next;
        // Earlier merges may have changed the two parts. The parts must still form the same token.
        const MergeTable::Entry* entry = bpe_.merges_.find(left.id, symbols_[right_at].id);
        if (entry == nullptr || entry->merged != top.merged) continue;

        left.id = top.merged;
        left.end = symbols_[right_at].end;
        left.next = symbols_[right_at].next;
        symbols_[right_at].alive = false;
        if (left.next >= 0) symbols_[left.next].previous = top.left;

        const size_t before = heap_.size();
        if (left.previous >= 0) add_candidate(left.previous, top.left);
        if (heap_.size() > before) std::push_heap(heap_.begin(), heap_.end());
        const size_t after = heap_.size();
        if (left.next >= 0) add_candidate(top.left, left.next);
        if (heap_.size() > after) std::push_heap(heap_.begin(), heap_.end());
    }
}

}  // namespace kvscope::checkpoint
