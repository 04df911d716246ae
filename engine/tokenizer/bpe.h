#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/tokenizer/tokenizer_limits.h"

namespace kvscope::checkpoint {

struct BpeOptions {
    std::optional<std::string> unknown_token;
    std::string continuing_subword_prefix;
    std::string end_of_word_suffix;
    bool fuse_unknown = false;
    bool byte_fallback = false;  ///< characters without a token become tokens of their bytes, such as <0xE2>
    bool ignore_merges = false;  ///< a word that equals a token becomes that token without merges
};

/// Byte-pair encoding of single words, as in the library `tokenizers`. Takes O(n log n) time for words of length n.
class Bpe {
 public:
    using Vocabulary = std::vector<std::pair<std::string, int32_t>>;
    using Merges = std::vector<std::pair<std::string, std::string>>;

    /// @param merges in order of rank @throws std::runtime_error if a merge names a token outside the vocabulary
    Bpe(Vocabulary vocabulary, const Merges& merges, BpeOptions options);

    [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const;

    /// Encodes the words of one text and caches them. The text must outlive the encoder.
    class Encoder {
     public:
        Encoder(const Bpe& bpe, TokenizerLimits& limits) : bpe_(bpe), limits_(limits) {}

        /// Appends a word's ids to `out` and, if `ends` is given, the end of each id's text in the word.
        void encode(std::string_view word, std::vector<int32_t>& out, std::vector<uint32_t>* ends = nullptr);

     private:
        struct Symbol {
            int32_t id;
            uint32_t end;  ///< offset in the word
            int32_t previous;
            int32_t next;
            bool alive;
        };
        struct Candidate {
            uint32_t rank;
            int32_t left;
            int32_t merged;
            [[nodiscard]] bool operator<(const Candidate& other) const {
                return rank != other.rank ? rank > other.rank : left > other.left;
            }
        };

        void cut_into_symbols(std::string_view word);
        void add_symbol(int32_t id, size_t end);
        void add_candidate(int32_t left, int32_t right);
        void merge();

        const Bpe& bpe_;
        TokenizerLimits& limits_;
        std::unordered_map<std::string_view, std::pair<uint32_t, uint32_t>> seen_;  // begin and count in cached_
        std::vector<int32_t> cached_;
        std::vector<uint32_t> cached_ends_;
        std::vector<Symbol> symbols_;
        std::vector<Candidate> heap_;
        std::string spelling_;
    };

 private:
    struct Hash {
        using is_transparent = void;
        [[nodiscard]] size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };

    /// Hash table from a pair of ids to the merge's rank and result. Encoding needs several look-ups per character.
    class MergeTable {
     public:
        struct Entry {
            uint64_t pair = empty;
            uint32_t rank = 0;
            int32_t merged = 0;
        };
        explicit MergeTable(size_t count);
        void set(int32_t left, int32_t right, uint32_t rank, int32_t merged);
        [[nodiscard]] const Entry* find(int32_t left, int32_t right) const;

     private:
        static constexpr uint64_t empty = ~uint64_t{0};
        [[nodiscard]] static uint64_t pair_of(int32_t left, int32_t right) {
            return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
        }
        [[nodiscard]] size_t slot_of(uint64_t pair) const { return (pair * 0x9E3779B97F4A7C15u) >> shift_; }

        std::vector<Entry> entries_;
        int shift_;
    };

    std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
    MergeTable merges_;
    BpeOptions options_;
    std::optional<int32_t> unknown_;
    std::array<int32_t, 256> byte_tokens_{};   // <0x00> … <0xFF>, -1 if missing
    std::array<int32_t, 0x800> characters_{};  // ids of characters with one or two bytes, -1 if missing
};

}  // namespace kvscope::checkpoint
