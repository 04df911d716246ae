// The kept entries of a run and the tokens that they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace kvscope::trace {

/// State of a token in one row of the cache.
struct TokenFate {
    enum class Kind {
        dropped,
        whole,    ///< has its own key and value
        rebuilt,  ///< has its own entry, which is not stored as a whole key and value
        merged    ///< shares an entry with other tokens
    };
    Kind kind = Kind::dropped;
    std::uint32_t entry = 0;     ///< position of the token's entry, i.e. of the last token in it
    std::uint32_t n_tokens = 1;  ///< number of tokens in that entry
    float cardinality = 1;       ///< weight n of that entry in attention; policies may limit n
    /// Relative errors of the keys and values that the cache returns for the row's tokens. NaN if not recorded.
    float key_error = std::numeric_limits<float>::quiet_NaN();
    float value_error = std::numeric_limits<float>::quiet_NaN();

    [[nodiscard]] bool is_held() const { return kind != Kind::dropped; }
};

/// The entries of a run, one row per layer and head. Without merging, each kept token has its own entry.
struct Kept {
    std::size_t n_layers = 0;
    std::size_t n_rows = 0;                ///< R, the number of rows per layer
    std::vector<std::uint64_t> offsets{};  ///< (L·R + 1) start of each row in `indices`
    std::vector<std::uint32_t> indices{};  ///< (Σ) positions of the entries, ascending in each row

    std::vector<std::int32_t> token_entry{};  ///< (L, R, N) entry of each token; empty if the run does not merge
    std::vector<float> cardinality{};         ///< (Σ) n of each entry; if empty, every n is 1
    std::vector<std::uint32_t> n_merged{};    ///< (Σ) number of tokens in each entry; empty if the run does not merge
    std::vector<std::uint64_t> held_offsets{};  ///< (L·R + 1) start of each row in `held_tokens`
    std::vector<std::uint32_t> held_tokens{};   ///< tokens that have an entry, ascending in each row, if the run merges
    std::vector<std::uint32_t> held_with{};     ///< for each of `held_tokens`, the number of tokens in its entry
    /// (L, R) number of entries that are not stored whole: the first entries of each row, or entries with is_whole = 0.
    std::vector<std::uint32_t> stored_entries{};
    std::vector<std::uint8_t> is_whole{};           ///< (Σ) 1 if the entry is a whole key and value, or empty
    std::vector<float> key_error{}, value_error{};  ///< (L, R) see TokenFate; empty if not recorded

    [[nodiscard]] std::size_t count(std::size_t layer, std::size_t row) const {
        const std::size_t i = layer * n_rows + row;
        return static_cast<std::size_t>(offsets[i + 1] - offsets[i]);
    }
    [[nodiscard]] std::span<const std::uint32_t> row(std::size_t layer, std::size_t row) const {
        return {indices.data() + offsets[layer * n_rows + row], count(layer, row)};
    }
    [[nodiscard]] bool merges() const { return !token_entry.empty(); }
    /// Returns the tokens that a row's entries hold. Without merging, these are the entries' positions.
    [[nodiscard]] std::span<const std::uint32_t> held(std::size_t layer, std::size_t row) const;

    /// Whether an entry is stored in parts. `entry` counts from the row's first entry.
    [[nodiscard]] bool is_in_parts(std::size_t layer, std::size_t row, std::size_t entry) const;

    [[nodiscard]] TokenFate fate(std::size_t layer, std::size_t row, std::uint32_t token) const;

    void find_held_tokens();
};

/// Returns why entries are invalid, e.g. "kept_offsets: expected …", or an empty text. Positions must be below `n`.
[[nodiscard]] std::string problem_of_kept(std::span<const std::uint64_t> offsets,
                                          std::span<const std::uint32_t> indices, std::size_t n);
/// Like problem_of_kept(), for the entry of each of the n tokens in each row. Requires valid offsets.
[[nodiscard]] std::string problem_of_token_entries(std::span<const std::uint64_t> offsets,
                                                   std::span<const std::int32_t> token_entry, std::size_t n);

}  // namespace kvscope::trace
