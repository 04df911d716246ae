// How the values of a data set lie in chunks, and how one chunk is packed: without HDF5, so that several threads can do
// it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

struct libdeflate_compressor;
struct libdeflate_decompressor;

namespace kvscope::trace {

/// Chunks of one shape side by side cover a data set, the last ones along a dimension beyond its end; or a block of it
/// that ends where chunks end.
struct ChunkLayout {
    std::vector<std::size_t> shape;  ///< of the data set or block; one dimension at least
    std::vector<std::size_t> chunk;  ///< as many numbers, none of them 0
    std::size_t element_bytes = 1;
    bool is_shuffled = true;

    [[nodiscard]] std::size_t n_chunks() const;
    [[nodiscard]] std::size_t chunk_bytes() const;
    /// The element with which a chunk begins, along each dimension.
    [[nodiscard]] std::vector<std::size_t> first_of(std::size_t number) const;
};

/// A chunk as it lies in the file.
class PackedChunk {
 public:
    /// Room for as many bytes, which are not set to anything.
    unsigned char* make_room(std::size_t bytes);
    void set_size(std::size_t bytes) { size_ = bytes; }
    [[nodiscard]] std::span<const unsigned char> bytes() const { return {room_.get(), size_}; }

 private:
    std::unique_ptr<unsigned char[]> room_;
    std::size_t capacity_ = 0, size_ = 0;
};

/// Packs chunks as HDF5's filters `shuffle` and `deflate` do; for one thread.
class ChunkPacker {
 public:
    ChunkPacker();
    ~ChunkPacker();
    ChunkPacker(const ChunkPacker&) = delete;
    ChunkPacker& operator=(const ChunkPacker&) = delete;

    /// @param values all of them; what a chunk has beyond their edges is 0
    void pack(const ChunkLayout& layout, std::size_t number, const unsigned char* values, PackedChunk& packed);

 private:
    libdeflate_compressor* compressor_;
    std::vector<unsigned char> chunk_, shuffled_;
};

/// Unpacks them; for one thread.
class ChunkUnpacker {
 public:
    ChunkUnpacker();
    ~ChunkUnpacker();
    ChunkUnpacker(const ChunkUnpacker&) = delete;
    ChunkUnpacker& operator=(const ChunkUnpacker&) = delete;

    /// False where the bytes are no chunk of that layout.
    bool check(const ChunkLayout& layout, std::span<const unsigned char> packed);
    /// The same, and puts it in its place among the values.
    bool unpack(const ChunkLayout& layout, std::size_t number, std::span<const unsigned char> packed,
                unsigned char* values);

 private:
    libdeflate_decompressor* decompressor_;
    std::vector<unsigned char> chunk_, elements_;
};

/// More bytes than any packed chunk has.
std::size_t most_packed_bytes(const ChunkLayout& layout);

}  // namespace kvscope::trace
