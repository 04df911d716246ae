#include "trace/hdf5/global_heap.h"

#include <bit>
#include <cstring>

#include "trace/hdf5/file_driver.h"
#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/input_file.h"

namespace kvscope::trace::h5 {

namespace {

constexpr std::size_t header_bytes = 16;
constexpr std::size_t object_header_bytes = 16;
constexpr std::uint64_t largest_heap = std::uint64_t{1} << 31;

static_assert(std::endian::native == std::endian::little, "HDF5 stores little-endian numbers");

std::uint64_t little_endian(const unsigned char* bytes, std::size_t count) {
    std::uint64_t out = 0;
    std::memcpy(&out, bytes, count);
    return out;
}

}  // namespace

std::optional<std::uint64_t> size_of_heap(std::span<const unsigned char> bytes) {
    if (bytes.size() < header_bytes || std::memcmp(bytes.data(), "GCOL", 4) != 0) return std::nullopt;
    return little_endian(&bytes[8], 8);
}

bool list_heap_objects(std::span<const unsigned char> collection, std::vector<HeapObject>& objects) {
    const std::uint64_t total = collection.size();
    objects.clear();
    if (total < smallest_heap || total > largest_heap) return false;
    if (size_of_heap(collection) != total || collection[4] != 1) return false;
    std::uint64_t at = header_bytes;
    // Bytes at the end are unused if they are too few for an object header.
    while (total - at >= object_header_bytes) {
        const auto index = static_cast<std::size_t>(little_endian(&collection[at], 2));
        const std::uint64_t size = little_endian(&collection[at + 8], 8);
        // Index 0 marks the free space at the end. Its size includes the object header.
        if (index == 0) return size == total - at;
        if (little_endian(&collection[at + 4], 4) != 0) return false;
        at += object_header_bytes;
        if (size > total - at) return false;
        if (index >= objects.size()) objects.resize(index + 1);
        if (objects[index].offset != 0) return false;
        objects[index] = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size)};
        const std::uint64_t padded = (size + 7) / 8 * 8;
        if (padded > total - at) return false;
        at += padded;
    }
    return true;
}

bool is_sound_heap(std::span<const unsigned char> collection) {
    std::vector<HeapObject> objects;
    return list_heap_objects(collection, objects);
}

std::optional<StoredTexts> StoredTexts::of_file(hid_t object) {
    const std::string action = "read the file's properties";
    const Handle file(checked(H5Iget_file_id(object), action), H5Fclose);
    const std::optional<int> descriptor = descriptor_of_input(file.get());
    const Handle creation(checked(H5Fget_create_plist(file.get()), action), H5Pclose);
    std::size_t address_bytes = 0, length_bytes = 0;
    hsize_t base = 0;
    checked(H5Pget_sizes(creation.get(), &address_bytes, &length_bytes), action);
    checked(H5Pget_userblock(creation.get(), &base), action);
    hsize_t length = 0;
    checked(H5Fget_filesize(file.get(), &length), action);
    if (!descriptor || address_bytes != 8 || length_bytes != 8 || base > length) return std::nullopt;
    return StoredTexts(*descriptor, base, length - base);
}

bool StoredTexts::read(std::uint64_t address, Heap& heap) {
    heap.address = 0;
    if (address > length_ || length_ - address < smallest_heap) return false;
    heap.bytes.resize(smallest_heap);  // the size of most heaps
    if (read_bytes_at_address(descriptor_, base_ + address, smallest_heap, heap.bytes.data()) != 0) return false;
    const std::uint64_t total = size_of_heap(heap.bytes).value_or(0);
    if (total < smallest_heap || total > largest_heap || total > length_ - address) return false;
    heap.bytes.resize(static_cast<std::size_t>(total));
    if (read_bytes_at_address(descriptor_, base_ + address + smallest_heap, heap.bytes.size() - smallest_heap,
                              heap.bytes.data() + smallest_heap) != 0)
        return false;
    if (!list_heap_objects(heap.bytes, heap.objects)) return false;
    heap.address = address;
    return true;
}

std::optional<std::string_view> StoredTexts::find(const unsigned char* reference) {
    const std::uint64_t length = little_endian(reference, 4);
    const std::uint64_t address = little_endian(reference + 4, 8);
    const std::uint64_t index = little_endian(reference + 12, 4);
    if (address == 0)  // a text that was never written
        return length == 0 ? std::optional(std::string_view()) : std::nullopt;
    Heap& heap = heaps_[address / smallest_heap % heaps_.size()];
    if (heap.address != address && !read(address, heap)) return std::nullopt;
    if (index >= heap.objects.size()) return std::nullopt;
    const HeapObject& object = heap.objects[index];
    if (object.offset == 0 || object.size != length) return std::nullopt;
    const auto* text = reinterpret_cast<const char*>(heap.bytes.data()) + object.offset;
    return std::string_view(text, ::strnlen(text, length));
}

}  // namespace kvscope::trace::h5
