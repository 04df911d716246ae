#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "policies/interface/observations.h"

namespace kvscope::policies {

struct Matrix {
    int n_rows = 0;
    int n_columns = 0;
    std::vector<float> numbers;  ///< shape (n_rows, n_columns)
    /// Whether the matrix was computed from the prompt. Its bytes then count as part of the cache.
    bool is_of_prompt = false;
    size_t prompt_bytes() const { return is_of_prompt ? numbers.size() * sizeof(float) : 0; }
};

/// Numbers of n entries that a layer's cache stores once for several heads, keys and values, or layers.
struct StoredBlock {
    int width = 0;
    std::vector<float> numbers{};  ///< shape (n, width)
};

/// A summand of the keys or values of n entries. It stores `width` numbers per entry in the model's type.
struct StoredPart {
    int width = 0;
    /// (n, width). If both `numbers` and `block` are empty, the part holds the prompt's own keys or values on
    /// `channels`.
    std::vector<float> numbers{};
    /// Replaces `numbers` by columns of a block of this or an earlier layer, for the same n entries.
    std::shared_ptr<const StoredBlock> block{};
    int first_column = 0;
    /// (width) channels that the numbers belong to, ascending. Empty for all d, or with a map.
    std::vector<uint16_t> channels{};
    /// (width, d) matrix that expands an entry's numbers to d channels; nullptr if the numbers are the channels.
    std::shared_ptr<const Matrix> map{};
    /// (n) factors of the entries' parts, in the model's type. Empty for 1.
    std::vector<float> scales{};
};

/// Keys or values of some entries: the sum of the parts.
struct StoredVectors {
    std::vector<StoredPart> parts{};
    /// (d) added to each sum, such as a projection's bias. Empty for none. Its bytes do not count.
    std::vector<float> offset{};
    /// For keys: whether the sum is a key before RoPE, which is rotated to its position when it is read.
    bool before_rope = false;
};

struct StoredEntries {
    /// (n) ascending. The position of a merged entry is that of its last token.
    std::vector<uint32_t> positions{};
    /// (n) tokens per entry: n_i in o = sum exp(e_i) v_i / sum n_i exp(e_i). Empty for 1 each.
    std::vector<float> masses{};
    StoredVectors keys{}, values{};
};

/// Storage of one row: the entries of `stored`, and whole keys and values at the positions `plain`. Their positions
/// together are the selection's row. Decoded tokens are appended whole.
struct StoredRow {
    std::vector<StoredEntries> stored{};
    std::vector<uint32_t> plain{};
    /// (N) entry of each token within the row, or -1. Empty if each entry holds only the token at its position.
    std::vector<int32_t> token_entry{};
};

/// Storage that replaces whole keys and values of the kept positions.
struct StoredLayer {
    std::vector<StoredRow> rows;
    std::vector<std::shared_ptr<const StoredBlock>> blocks{};
};

struct Selection;

/// Checks the selection's `stored`, if set: positions, sizes of the parts, and masses above 0.
/// @throws SelectionError that names policy, layer and row, the expected and the found value.
void require_stored(std::string_view policy, int layer, const ModelShape& shape, const Selection& selection);

/// Bytes by content. Numbers take `element` bytes, masses four and channel indices two.
struct StoredBytes {
    size_t whole = 0;     ///< keys and values of d numbers each
    size_t channels = 0;  ///< subsets of key or value channels, with the channel indices
    size_t mapped = 0;    ///< numbers that maps expand to keys or values, and maps computed from the prompt
    size_t masses = 0;
    size_t total() const { return whole + channels + mapped + masses; }
};

/// Returns one row's share of bytes that a layer stores once. Shares differ by at most one byte.
size_t row_share(size_t bytes, size_t row, size_t n_rows);

/// Returns the bytes of each row (R). Data that a layer stores once are divided among its rows.
std::vector<size_t> row_bytes_of(const Selection& selection, int head_dim, size_t element);

/// Summary of a layer's storage for the trace: R rows, N tokens, entries of all rows in sequence.
struct StoredSummary {
    std::vector<uint8_t> key_channels;  ///< (R, d) 1 if every entry of the row has this channel of the key
    std::vector<int32_t> token_entry;   ///< (R, N) entry of each token within the row, or -1
    std::vector<float> masses;          ///< mass of each entry
    std::vector<uint8_t> whole;         ///< 1 for each entry whose key and value are whole
    std::vector<uint32_t> n_entries;    ///< (R) number of entries
    std::vector<uint32_t> n_stored;     ///< (R) number of entries that are not whole
    /// (R) mean numbers stored per entry that is not whole; d if there are none. Whole keys and values of a block count
    /// with their d columns. The block's other users share the remaining columns equally.
    std::vector<float> key_width, value_width;
    StoredBytes bytes;
    bool drops_channels = false;  ///< whether `key_channels` contains a 0
    bool merges = false;          ///< whether some entry has a mass or a number of tokens other than 1
};

/// Summarizes a valid selection. @throws SelectionError if `token_entry` does not have N tokens.
StoredSummary summary_of(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                         const Selection& selection, size_t element);

}  // namespace kvscope::policies
