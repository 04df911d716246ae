// Layout of a data set in chunks, and packing of single chunks. Uses no HDF5, so that several threads can pack.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

struct libdeflate_compressor;
struct libdeflate_decompressor;

namespace kvscope::trace {

/// Chunks of equal size that cover a data set, or a block of whole chunks. The last chunks may extend past the end.
struct ChunkLayout {
    std::vector<std::size_t> shape;  ///< shape of the data set or block; at least one dimension
    std::vector<std::size_t> chunk;  ///< shape of a chunk; same rank as `shape`, no zero
    std::size_t element_bytes = 1;
    bool is_shuffled = true;

    [[nodiscard]] std::size_t n_chunks() const;
    [[nodiscard]] std::size_t chunk_bytes() const;
    [[nodiscard]] std::vector<std::size_t> first_of(std::size_t number) const;
};

class PackedChunk {
 public:
    /// Returns an uninitialized buffer of `bytes` bytes.
    [[nodiscard]] unsigned char* make_room(std::size_t bytes);
    void set_size(std::size_t bytes) { size_ = bytes; }
    [[nodiscard]] std::span<const unsigned char> bytes() const { return {room_.get(), size_}; }

 private:
    std::unique_ptr<unsigned char[]> room_;
    std::size_t capacity_ = 0, size_ = 0;
};

/// Packs chunks as HDF5's filters `shuffle` and `deflate` do. Use one packer per thread.
class ChunkPacker {
 public:
    ChunkPacker();
    ~ChunkPacker();
    ChunkPacker(const ChunkPacker&) = delete;
    ChunkPacker& operator=(const ChunkPacker&) = delete;

    /// Packs chunk `number` of `values`, the whole data set or block. Elements of the chunk past the end become 0.
    void pack(const ChunkLayout& layout, std::size_t number, const unsigned char* values, PackedChunk& packed);

 private:
    libdeflate_compressor* compressor_;
    std::vector<unsigned char> chunk_, shuffled_;
};

/// Unpacks chunks that were packed with `shuffle` and `deflate`. Use one unpacker per thread.
class ChunkUnpacker {
 public:
    ChunkUnpacker();
    ~ChunkUnpacker();
    ChunkUnpacker(const ChunkUnpacker&) = delete;
    ChunkUnpacker& operator=(const ChunkUnpacker&) = delete;

    [[nodiscard]] bool check(const ChunkLayout& layout, std::span<const unsigned char> packed);
    /// Unpacks a chunk and copies its elements to their places in `values`. Returns false if the chunk is damaged.
    [[nodiscard]] bool unpack(const ChunkLayout& layout, std::size_t number, std::span<const unsigned char> packed,
                              unsigned char* values);

 private:
    libdeflate_decompressor* decompressor_;
    std::vector<unsigned char> chunk_, elements_;
};

[[nodiscard]] std::size_t most_packed_bytes(const ChunkLayout& layout);

}  // namespace kvscope::trace
