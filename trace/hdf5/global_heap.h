// Reads texts of variable length directly from a file's global heaps. HDF5 looks up each text in its metadata cache,
// which takes most of the time of reading a table.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kvscope::trace::h5 {

/// Size of a stored reference to a text: length (4 bytes), address of the heap (8), number of its object (4).
inline constexpr std::size_t stored_text_bytes = 16;

/// The place of an object in a global heap collection. `size` is 0 for numbers that the collection lacks.
struct HeapObject {
    std::uint32_t offset = 0, size = 0;
};

inline constexpr std::uint64_t smallest_heap = 4096;  ///< bytes

/// Returns the size in bytes that the header of a global heap collection states; nullopt if `bytes` do not start with
/// such a header.
[[nodiscard]] std::optional<std::uint64_t> size_of_heap(std::span<const unsigned char> bytes);
/// Lists the objects of a global heap collection by their numbers. `collection` starts at the signature.
/// Returns false if the collection breaks the HDF5 file format (III.E).
[[nodiscard]] bool list_heap_objects(std::span<const unsigned char> collection, std::vector<HeapObject>& objects);
/// Whether list_heap_objects() returns true.
[[nodiscard]] bool is_sound_heap(std::span<const unsigned char> collection);

/// The texts of one file. Keeps the bytes of few heaps at a time, so that memory does not grow with the file.
class StoredTexts {
 public:
    /// Returns nullopt if kvscope's input driver has not opened the file, or if addresses do not have 8 bytes.
    [[nodiscard]] static std::optional<StoredTexts> of_file(hid_t object);

    /// Returns the text of a reference, or nullopt if the reference or its heap is damaged. The text is valid until
    /// the next call.
    [[nodiscard]] std::optional<std::string_view> find(const unsigned char* reference);

 private:
    struct Heap {
        std::uint64_t address = 0;  ///< 0: none
        std::vector<unsigned char> bytes;
        std::vector<HeapObject> objects;
    };

    StoredTexts(int descriptor, std::uint64_t base, std::uint64_t length)
        : descriptor_(descriptor), base_(base), length_(length) {}
    [[nodiscard]] bool read(std::uint64_t address, Heap& heap);

    int descriptor_;
    std::uint64_t base_;                                 ///< address of the superblock, from which addresses count
    std::uint64_t length_;                               ///< bytes of the file from `base_`
    std::vector<Heap> heaps_ = std::vector<Heap>(1024);  ///< by address
};

}  // namespace kvscope::trace::h5
