#include "trace/hdf5/threaded_chunk_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <vector>

#include "kernels/threads/parallel_with_scratch.h"
#include "trace/hdf5/chunk_packing.h"
#include "trace/hdf5/hdf5.h"

namespace kvscope::trace::h5 {

namespace {

/// Limits on packed chunks that are in memory at the same time.
constexpr std::size_t most_bytes_at_once = std::size_t{64} << 20, most_chunks_at_once = 4096;
/// HDF5 itself packs larger chunks, because each thread would hold two. Only tables of long texts need large chunks.
constexpr std::size_t largest_chunk = std::size_t{4} << 20;

/// Whether a data set uses `deflate`, alone or after `shuffle`, on whole chunks. Sets `is_shuffled`.
bool has_filters(hid_t creation, std::size_t element_bytes, bool& is_shuffled) {
    unsigned options = 0;
    if (H5Pget_chunk_opts(creation, &options) < 0 || options != 0) return false;
    const int n_filters = H5Pget_nfilters(creation);
    if (n_filters != 1 && n_filters != 2) return false;
    const auto filter = [&](int i, unsigned& value) {
        unsigned flags = 0;
        std::size_t n_values = 1;
        return H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &n_values, &value, 0, nullptr, nullptr);
    };
    unsigned value = 0;
    if (filter(n_filters - 1, value) != H5Z_FILTER_DEFLATE) return false;
    is_shuffled = n_filters == 2;
    return !is_shuffled || (filter(0, value) == H5Z_FILTER_SHUFFLE && value == element_bytes);
}

bool is_plain(hid_t type) {
    const H5T_class_t of = H5Tget_class(type);
    return of == H5T_INTEGER || of == H5T_FLOAT || (of == H5T_STRING && H5Tis_variable_str(type) == 0);
}

/// @param row_bytes size of a table's row in the file; 0 for a data set of plain values
std::optional<ChunkLayout> layout_of(hid_t data_set, const std::string& action, std::size_t row_bytes = 0) {
    const Handle creation(checked(H5Dget_create_plist(data_set), action), H5Pclose);
    const Handle type(checked(H5Dget_type(data_set), action), H5Tclose);
    ChunkLayout layout;
    layout.element_bytes = row_bytes > 0 ? row_bytes : H5Tget_size(type.get());
    const bool is_known = row_bytes > 0 || is_plain(type.get());
    if (H5Pget_layout(creation.get()) != H5D_CHUNKED || !is_known || layout.element_bytes == 0 ||
        !has_filters(creation.get(), layout.element_bytes, layout.is_shuffled))
        return std::nullopt;
    layout.shape = data_set_info(data_set).shape;
    std::vector<hsize_t> chunk(layout.shape.size());
    if (chunk.empty() ||
        H5Pget_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()) != static_cast<int>(chunk.size()))
        return std::nullopt;
    std::size_t bytes = layout.element_bytes;
    for (const hsize_t extent : chunk) {
        if (extent == 0 || extent > largest_chunk / bytes) return std::nullopt;
        bytes *= extent;
    }
    layout.chunk.assign(chunk.begin(), chunk.end());
    return layout;
}

/// Returns the number of chunks per batch. Batches have similar sizes, so that the last one keeps all threads busy.
std::size_t chunks_at_once(const ChunkLayout& layout) {
    const std::size_t n_chunks = layout.n_chunks();
    const std::size_t most =
        std::clamp<std::size_t>(most_bytes_at_once / most_packed_bytes(layout), 1, most_chunks_at_once);
    const std::size_t n_rows = std::max<std::size_t>(1, n_chunks / most + (n_chunks % most != 0 ? 1 : 0));
    return std::max<std::size_t>(1, n_chunks / n_rows + (n_chunks % n_rows != 0 ? 1 : 0));
}

int members_for(std::size_t n_chunks) {
    return static_cast<int>(std::min(n_chunks, static_cast<std::size_t>(std::max(1, kernels::threads()))));
}

std::vector<hsize_t> offset_of(const ChunkLayout& layout, std::size_t number) {
    const auto first = layout.first_of(number);
    return {first.begin(), first.end()};
}

/// Restricts the layout to a block. Returns false if the block begins or ends inside a chunk.
bool narrow(ChunkLayout& layout, const Block& block) {
    for (std::size_t i = 0; i < layout.shape.size(); ++i) {
        const bool ends_with_a_chunk =
            block.count[i] % layout.chunk[i] == 0 || block.first[i] + block.count[i] == layout.shape[i];
        if (block.first[i] % layout.chunk[i] != 0 || !ends_with_a_chunk) return false;
    }
    layout.shape = block.count;
    return true;
}

struct ChunkInWork {
    PackedChunk packed;
    std::atomic<bool> is_packed = false;
};

/// Packs a batch of chunks on several threads. At the same time, the calling thread writes the packed chunks in order.
class ChunkRow {
 public:
    ChunkRow(hid_t data_set, const ChunkLayout& layout, const void* values, const std::string& action)
        : data_set_(data_set), layout_(layout), values_(static_cast<const unsigned char*>(values)), action_(action) {}

    void write(std::size_t first, std::size_t count) {
        first_ = first;
        count_ = count;
        n_written_ = 0;
        unclaimed_ = 0;
        while (chunks_.size() < count) chunks_.emplace_back();
        for (ChunkInWork& chunk : chunks_) chunk.is_packed = false;
        kernels::run_on_thread_team(members_for(count), [&](int member) { take_part(member == 0); });
        write_those_packed();
    }

 private:
    void take_part(bool is_writing) {
        ChunkPacker packer;
        for (std::size_t i = unclaimed_++; i < count_; i = unclaimed_++) {
            packer.pack(layout_, first_ + i, values_, chunks_[i].packed);
            chunks_[i].is_packed.store(true, std::memory_order_release);
            if (is_writing) write_those_packed();
        }
    }

    void write_those_packed() {
        for (; n_written_ < count_ && chunks_[n_written_].is_packed.load(std::memory_order_acquire); ++n_written_) {
            const auto bytes = chunks_[n_written_].packed.bytes();
            const auto offset = offset_of(layout_, first_ + n_written_);
            checked(H5Dwrite_chunk(data_set_, H5P_DEFAULT, 0, offset.data(), bytes.size(), bytes.data()), action_);
        }
    }

    hid_t data_set_;
    const ChunkLayout& layout_;
    const unsigned char* values_;
    const std::string& action_;
    std::size_t first_ = 0, count_ = 0, n_written_ = 0;
    std::atomic<std::size_t> unclaimed_ = 0;
    std::deque<ChunkInWork> chunks_;
};

enum class Fetched { whole, missing, unfiltered };

bool is_stored(hid_t data_set, const std::vector<hsize_t>& offset, hsize_t& size, const std::string& action) {
    herr_t status = -1;
    H5E_BEGIN_TRY { status = H5Dget_chunk_storage_size(data_set, offset.data(), &size); }
    H5E_END_TRY
    if (status >= 0) return size > 0;
    // In HDF5 1.10, the call above also fails for a missing chunk. The slower call below recognizes a missing chunk.
    unsigned passed_by = 0;
    haddr_t at = HADDR_UNDEF;
    checked(H5Dget_chunk_info_by_coord(data_set, offset.data(), &passed_by, &at, &size), action);
    return at != HADDR_UNDEF && size > 0;
}

Fetched fetch(hid_t data_set, const ChunkLayout& layout, const std::vector<hsize_t>& offset, PackedChunk& packed,
              const std::string& action) {
    hsize_t size = 0;
    if (!is_stored(data_set, offset, size, action)) return Fetched::missing;
    // kvscope never writes larger chunks. Chunks without filters or in damaged files can be larger.
    if (size > most_packed_bytes(layout)) return Fetched::unfiltered;
    unsigned char* const room = packed.make_room(static_cast<std::size_t>(size));
    packed.set_size(static_cast<std::size_t>(size));
    std::uint32_t passed_by = 0;
    checked(H5Dread_chunk(data_set, H5P_DEFAULT, offset.data(), &passed_by, room), action);
    return passed_by == 0 ? Fetched::whole : Fetched::unfiltered;
}

/// Calls use(unpacker, number, bytes) for all chunks, on several threads. `use` returns false for a damaged chunk.
/// Returns Fetched::whole, or the kind of chunk that stopped the loop. `block` is nullptr for the whole data set.
template <class Use>
Fetched over_chunks(hid_t data_set, const ChunkLayout& layout, const Block* block, const std::string& action,
                    const Use& use) {
    const std::size_t n_chunks = layout.n_chunks(), at_once = chunks_at_once(layout);
    std::vector<PackedChunk> packed(std::min(n_chunks, at_once));
    for (std::size_t first = 0; first < n_chunks; first += at_once) {
        const std::size_t count = std::min(at_once, n_chunks - first);
        for (std::size_t i = 0; i < count; ++i) {
            auto offset = offset_of(layout, first + i);
            for (std::size_t d = 0; block != nullptr && d < offset.size(); ++d) offset[d] += block->first[d];
            const Fetched fetched = fetch(data_set, layout, offset, packed[i], action);
            if (fetched != Fetched::whole) return fetched;
        }
        kernels::parallel_with_scratch<ChunkUnpacker>(
            static_cast<std::int64_t>(count), [&](std::int64_t at, auto& unpacker) {
                const auto i = static_cast<std::size_t>(at);
                if (!use(unpacker, first + i, packed[i].bytes()))
                    throw Failure(fmt::format("cannot {}: one of its chunks is damaged", action), false);
            });
    }
    return Fetched::whole;
}

}  // namespace

bool write_chunks(hid_t data_set, const void* values, const std::string& action) {
    const auto layout = layout_of(data_set, action);
    if (!layout) return false;
    const std::size_t n_chunks = layout->n_chunks(), at_once = chunks_at_once(*layout);
    ChunkRow row(data_set, *layout, values, action);
    for (std::size_t first = 0; first < n_chunks; first += at_once)
        row.write(first, std::min(at_once, n_chunks - first));
    return true;
}

namespace {

bool read_with_layout(hid_t data_set, std::optional<ChunkLayout> layout, const Block* block, void* values,
                      const std::string& action) {
    if (!layout || (block != nullptr && !narrow(*layout, *block))) return false;
    return over_chunks(data_set, *layout, block, action,
                       [&](ChunkUnpacker& unpacker, std::size_t number, std::span<const unsigned char> bytes) {
                           return unpacker.unpack(*layout, number, bytes, static_cast<unsigned char*>(values));
                       }) == Fetched::whole;
}

}  // namespace

bool read_chunks(hid_t data_set, const Block* block, void* values, const std::string& action) {
    return read_with_layout(data_set, layout_of(data_set, action), block, values, action);
}

bool read_stored_rows(hid_t data_set, std::size_t element_bytes, const Block& block, void* rows,
                      const std::string& action) {
    const auto layout = layout_of(data_set, action, element_bytes);
    // Without shuffling, the filters do not tell the size of a stored row.
    return layout && layout->is_shuffled && read_with_layout(data_set, layout, &block, rows, action);
}

bool check_chunks(hid_t data_set, const std::string& action) {
    const auto layout = layout_of(data_set, action);
    if (!layout) return false;
    const Fetched fetched =
        over_chunks(data_set, *layout, nullptr, action,
                    [&](ChunkUnpacker& unpacker, std::size_t /*number*/, std::span<const unsigned char> bytes) {
                        return unpacker.check(*layout, bytes);
                    });
    if (fetched == Fetched::missing)
        throw Failure(fmt::format("cannot {}: one of its chunks is missing", action), false);
    return fetched == Fetched::whole;
}

}  // namespace kvscope::trace::h5
