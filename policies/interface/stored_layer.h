#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "policies/interface/observations.h"

namespace kvscope::policies {

/// A matrix in f32, row after row.
struct Matrix {
    int n_rows = 0;
    int n_columns = 0;
    std::vector<float> numbers;  ///< (n_rows, n_columns)
    /// Made from the prompt, not from the model: it belongs to the cache, which is held to need its bytes, too.
    bool is_of_prompt = false;
    size_t prompt_bytes() const { return is_of_prompt ? numbers.size() * sizeof(float) : 0; }
};

/// Numbers of n entries that a layer's cache stores once, in the model's type, for parts of several heads, of keys and
/// of values, of this layer and of others.
struct StoredBlock {
    int width = 0;
    std::vector<float> numbers{};  ///< (n, width)
};

/// One of the parts whose sum is the key, or the value, of each of n entries. What is stored of it are `width` numbers
/// an entry, in the model's type.
struct StoredPart {
    int width = 0;
    /// (n, width). Empty without a block: the prompt's own keys or values at the entries' positions, on `channels`.
    std::vector<float> numbers{};
    /// In place of numbers of its own: those that this layer or one before it stores for several, of the same n
    /// entries, from `first_column` on.
    std::shared_ptr<const StoredBlock> block{};
    int first_column = 0;
    /// (width) the channels that the numbers are, ascending; empty without a map: all d.
    std::vector<uint16_t> channels{};
    /// (width, d) what an entry's numbers, as a row, are multiplied by to give d channels. Where it belongs to the
    /// model its bytes are not counted; one of the prompt's is, once in a row. nullptr: the numbers are the channels
    /// themselves.
    std::shared_ptr<const Matrix> map{};
    /// (n) what an entry's share of the sum is multiplied by, a number in the model's type; empty: 1.
    std::vector<float> scales{};
};

/// The keys or the values of some entries: the sum of the parts.
struct StoredVectors {
    std::vector<StoredPart> parts{};
    /// (d) added to each entry's sum, before RoPE where that is; empty: nothing. Like a map it belongs to the model: a
    /// projection's bias.
    std::vector<float> offset{};
    /// Of keys: the sum is a key before RoPE, turned to its position when it is read. Else it is one after RoPE.
    bool before_rope = false;
};

/// Entries of a row that are stored alike.
struct StoredEntries {
    /// (n) ascending; of an entry that several tokens went into, its last one's.
    std::vector<uint32_t> positions{};
    /// (n) tokens that an entry stands for, n_i in o = sum exp(e_i) v_i / sum n_i exp(e_i); empty: 1 each.
    std::vector<float> masses{};
    StoredVectors keys{}, values{};
};

/// What a layer's cache holds of a row: the entries of `stored`, and whole keys and values at the positions `plain`.
/// Together, their positions are the selection's row; where tokens are merged, one after the other. Decoded tokens are
/// stored whole, behind them.
struct StoredRow {
    std::vector<StoredEntries> stored{};
    std::vector<uint32_t> plain{};
    /// (N) the entry, counted from the row's first, that a token went into; -1: none. Of an entry's tokens the last is
    /// at its position. Empty: each entry holds the token at its position alone.
    std::vector<int32_t> token_entry{};
};

/// What a layer's cache holds in place of whole keys and values of the kept positions: data, which the engine stores,
/// attends to, counts, copies and goes back in.
struct StoredLayer {
    std::vector<StoredRow> rows;
    /// What is stored for several parts.
    std::vector<std::shared_ptr<const StoredBlock>> blocks{};
};

struct Selection;

/// What the selection says is stored, if it does: its rows, each with positions that are the selection's, and parts
/// whose sizes are those that `StoredLayer` gives them; masses finite and above 0; at least one part for keys and one
/// for values.
/// @param policy what the policy is called in the message
/// @throws SelectionError that names policy, layer, row, what was expected and what was found.
void require_stored(std::string_view policy, int layer, const ModelShape& shape, const Selection& selection);

/// Bytes that something needs, by what they hold: numbers of `element` bytes each, masses in f32, channels' numbers in
/// two bytes each.
struct StoredBytes {
    size_t whole = 0;     ///< keys and values of d numbers each
    size_t channels = 0;  ///< some channels of them, and which ones these are
    size_t mapped = 0;    ///< what maps turn into them, and such maps as are the prompt's own
    size_t masses = 0;
    size_t total() const { return whole + channels + mapped + masses; }
};

/// A row's share of what its layer stores for several: they are equal but for single bytes.
size_t row_share(size_t bytes, size_t row, size_t n_rows);

/// (R) what the rows of a selection need in all, as it is stored; what a layer stores for several is shared out.
std::vector<size_t> row_bytes_of(const Selection& selection, int head_dim, size_t element);

/// A layer's storage in the terms of a trace: rows R, tokens N, entries of all rows one after the other.
struct StoredSummary {
    std::vector<uint8_t> key_channels;  ///< (R, d) 1 where every entry of the row has the key's channel
    std::vector<int32_t> token_entry;   ///< (R, N) the row's entry that a token went into; -1: none
    std::vector<float> masses;          ///< of each entry
    std::vector<uint8_t> whole;         ///< of each entry: 1 where it has a whole key and a whole value
    std::vector<uint32_t> n_entries;    ///< (R)
    std::vector<uint32_t> n_stored;     ///< (R) entries that have not
    /// (R) numbers that the layer stores for each of those, the mean; d where there are none. Of a block, a row's whole
    /// key or value has its d columns; the other keys and values that read the block have equal parts of the rest.
    std::vector<float> key_width, value_width;
    StoredBytes bytes;
    bool drops_channels = false;  ///< some of `key_channels` are 0
    bool merges = false;          ///< some mass is not 1, or some entry has another number of tokens than one
};

/// Of a selection that holds together.
/// @throws SelectionError for a token_entry that is not of N tokens.
StoredSummary summary_of(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                         const Selection& selection, size_t element);

}  // namespace kvscope::policies
