#include "trace/hdf5/chunk_packing.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/shuffle_bytes.h"

namespace kvscope::trace {

namespace {

/// libdeflate's level 2 takes 2/3 of the time of zlib's level 1. libdeflate's level 1 packs many zeros poorly.
constexpr int packing_level = 2;

std::size_t pieces_along(const ChunkLayout& layout, std::size_t dimension) {
    const std::size_t extent = layout.shape[dimension], chunk = layout.chunk[dimension];
    return extent / chunk + (extent % chunk != 0 ? 1 : 0);
}

/// Calls row(offset in the values, offset in the chunk, count), all in bytes, for each contiguous run of elements.
template <class Row>
void over_rows(const ChunkLayout& layout, std::size_t number, const Row& row) {
    const std::vector<std::size_t> first = layout.first_of(number);
    const std::size_t rank = first.size();
    std::vector<std::size_t> extent(rank), at(rank, 0);
    for (std::size_t i = 0; i < rank; ++i) extent[i] = std::min(layout.chunk[i], layout.shape[i] - first[i]);
    for (;;) {
        std::size_t in_values = 0, in_chunk = 0;
        for (std::size_t i = 0; i < rank; ++i) {
            in_values = in_values * layout.shape[i] + first[i] + at[i];
            in_chunk = in_chunk * layout.chunk[i] + at[i];
        }
        row(in_values * layout.element_bytes, in_chunk * layout.element_bytes, extent.back() * layout.element_bytes);
        std::size_t i = rank - 1;
        while (i > 0 && ++at[i - 1] == extent[i - 1]) at[--i] = 0;
        if (i == 0) return;
    }
}

bool needs_shuffling(const ChunkLayout& layout) { return layout.is_shuffled && layout.element_bytes > 1; }

}  // namespace

std::size_t ChunkLayout::n_chunks() const {
    std::size_t n = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) n *= pieces_along(*this, i);
    return n;
}

std::size_t ChunkLayout::chunk_bytes() const {
    std::size_t bytes = element_bytes;
    for (const std::size_t extent : chunk) bytes *= extent;
    return bytes;
}

std::vector<std::size_t> ChunkLayout::first_of(std::size_t number) const {
    std::vector<std::size_t> first(shape.size());
    for (std::size_t i = shape.size(); i-- > 0; number /= pieces_along(*this, i))
        first[i] = number % pieces_along(*this, i) * chunk[i];
    return first;
}

unsigned char* PackedChunk::make_room(std::size_t bytes) {
    if (bytes > capacity_) {
        room_ = std::make_unique_for_overwrite<unsigned char[]>(bytes);
        capacity_ = bytes;
    }
    return room_.get();
}

std::size_t most_packed_bytes(const ChunkLayout& layout) {
    return libdeflate_zlib_compress_bound(nullptr, layout.chunk_bytes());
}

ChunkPacker::ChunkPacker() : compressor_(libdeflate_alloc_compressor(packing_level)) {
    if (compressor_ == nullptr) throw std::bad_alloc();
}

ChunkPacker::~ChunkPacker() { libdeflate_free_compressor(compressor_); }

void ChunkPacker::pack(const ChunkLayout& layout, std::size_t number, const unsigned char* values,
                       PackedChunk& packed) {
    const std::size_t size = layout.chunk_bytes();
    chunk_.assign(size, 0);
    over_rows(layout, number, [&](std::size_t in_values, std::size_t in_chunk, std::size_t count) {
        std::memcpy(chunk_.data() + in_chunk, values + in_values, count);
    });
    const unsigned char* bytes = chunk_.data();
    if (needs_shuffling(layout)) {
        shuffled_.resize(size);
        kernels::shuffle_bytes(bytes, size / layout.element_bytes, layout.element_bytes, shuffled_.data());
        bytes = shuffled_.data();
    }
    const std::size_t most = most_packed_bytes(layout);
    packed.set_size(libdeflate_zlib_compress(compressor_, bytes, size, packed.make_room(most), most));
}

ChunkUnpacker::ChunkUnpacker() : decompressor_(libdeflate_alloc_decompressor()) {
    if (decompressor_ == nullptr) throw std::bad_alloc();
}

ChunkUnpacker::~ChunkUnpacker() { libdeflate_free_decompressor(decompressor_); }

bool ChunkUnpacker::check(const ChunkLayout& layout, std::span<const unsigned char> packed) {
    chunk_.resize(layout.chunk_bytes());
    // A null size makes libdeflate fail unless the output fills the buffer exactly.
    return libdeflate_zlib_decompress(decompressor_, packed.data(), packed.size(), chunk_.data(), chunk_.size(),
                                      nullptr) == LIBDEFLATE_SUCCESS;
}

bool ChunkUnpacker::unpack(const ChunkLayout& layout, std::size_t number, std::span<const unsigned char> packed,
                           unsigned char* values) {
    if (!check(layout, packed)) return false;
    const unsigned char* bytes = chunk_.data();
    if (needs_shuffling(layout)) {
        elements_.resize(chunk_.size());
        kernels::unshuffle_bytes(bytes, chunk_.size() / layout.element_bytes, layout.element_bytes, elements_.data());
        bytes = elements_.data();
    }
    over_rows(layout, number, [&](std::size_t in_values, std::size_t in_chunk, std::size_t count) {
        std::memcpy(values + in_values, bytes + in_chunk, count);
    });
    return true;
}

}  // namespace kvscope::trace
