#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <type_traits>

#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/threaded_chunk_io.h"

namespace kvscope::trace::h5 {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
/// Level 1 is several times faster than level 9, and its output for shuffled floats is only a few percent larger.
constexpr unsigned deflate_level = 1;
/// Above this size, texts are stored with variable length, because padding to a fixed length would waste memory.
constexpr std::size_t fixed_text_bytes = std::size_t{64} << 20;

Handle make_space(std::span<const std::size_t> shape) {
    const std::vector<hsize_t> dims(shape.begin(), shape.end());
    return {checked(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "make a shape"), H5Sclose};
}

void write_raw(hid_t location, const std::string& path, hid_t type, std::span<const std::size_t> shape,
               const void* data) {
    const std::string action = fmt::format("write {}", path);
    const Handle space = make_space(shape);
    const Handle creation = creation_properties(shape, H5Tget_size(type));
    const Handle links = link_properties();
    Handle data_set(
        checked(H5Dcreate2(location, path.c_str(), type, space.get(), links.get(), creation.get(), H5P_DEFAULT),
                action),
        H5Dclose);
    const bool is_empty = checked(static_cast<hid_t>(H5Sget_simple_extent_npoints(space.get())), action) == 0;
    if (!is_empty && !write_chunks(data_set.get(), data, action))
        checked(H5Dwrite(data_set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), action);
    data_set.close(action);
}

void read_values(hid_t data_set, const Block* block, hid_t memory_type, void* values, const std::string& action) {
    const Handle type(checked(H5Dget_type(data_set), action), H5Tclose);
    if (H5Tequal(type.get(), memory_type) > 0 && read_chunks(data_set, block, values, action)) return;
    if (block == nullptr) {
        checked(H5Dread(data_set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), action);
        return;
    }
    const Handle file_space(checked(H5Dget_space(data_set), action), H5Sclose);
    const std::vector<hsize_t> first(block->first.begin(), block->first.end());
    const std::vector<hsize_t> count(block->count.begin(), block->count.end());
    const Handle memory_space(checked(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), action),
                              H5Sclose);
    checked(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr),
            action);
    checked(H5Dread(data_set, memory_type, memory_space.get(), file_space.get(), H5P_DEFAULT, values), action);
}

}  // namespace

Handle text_type(std::size_t length) {
    Handle type(checked(H5Tcopy(H5T_C_S1), "make a text type"), H5Tclose);
    checked(H5Tset_size(type.get(), length == 0 ? H5T_VARIABLE : length), "make a text type");
    checked(H5Tset_cset(type.get(), H5T_CSET_UTF8), "make a text type");
    checked(H5Tset_strpad(type.get(), length == 0 ? H5T_STR_NULLTERM : H5T_STR_NULLPAD), "make a text type");
    return type;
}

std::string type_name(hid_t type) {
    const std::size_t bits = 8 * H5Tget_size(type);
    switch (H5Tget_class(type)) {
        case H5T_INTEGER:
            return fmt::format("{}{}", H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i', bits);
        case H5T_FLOAT:
            return fmt::format("f{}", bits);
        case H5T_STRING:
            return "text";
        case H5T_COMPOUND:
            return "table";
        case H5T_ENUM:
            return "enumeration";
        default:
            return "another type";
    }
}

const char* type_name(schema::Type type) {
    constexpr const char* names[] = {"i32", "u8",  "u16",        "u32",        "u64",
                                     "f32", "f64", "f32 or f64", "f32 or u16", "text"};
    return names[static_cast<std::size_t>(type)];
}

Handle open_data_set(hid_t location, const std::string& path) {
    const std::string action = fmt::format("open the data set {}", path);
    Handle data_set(checked(H5Dopen2(location, path.c_str(), H5P_DEFAULT), action), H5Dclose);
    const Handle creation(checked(H5Dget_create_plist(data_set.get()), action), H5Pclose);
    if (H5Pget_layout(creation.get()) == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0)
        throw Failure(
            fmt::format("the data set {} stores its values in other files, which kvscope does not open", path), false);
    return data_set;
}

DataSetInfo data_set_info(hid_t data_set) {
    const std::string action = "read a data set's type and shape";
    const Handle type(checked(H5Dget_type(data_set), action), H5Tclose);
    const Handle space(checked(H5Dget_space(data_set), action), H5Sclose);
    DataSetInfo out;
    out.type = type_name(type.get());
    for (const auto ours : {schema::Type::i32, schema::Type::u8, schema::Type::u16, schema::Type::u32,
                            schema::Type::u64, schema::Type::f32, schema::Type::f64, schema::Type::text}) {
        if (out.type == type_name(ours)) out.element = ours;
    }
    const int rank = checked(H5Sget_simple_extent_ndims(space.get()), action);
    std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
    checked(H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr), action);
    out.shape.assign(dims.begin(), dims.end());
    out.bytes = H5Tget_size(type.get());
    for (const std::size_t extent : out.shape) {
        if (__builtin_mul_overflow(out.bytes, extent, &out.bytes)) {
            throw Failure(fmt::format("the shape ({}) is implausible", fmt::join(out.shape, ", ")), false);
        }
    }
    out.stored_bytes = H5Dget_storage_size(data_set);
    return out;
}

Handle creation_properties(std::span<const std::size_t> shape, std::size_t element_size) {
    const std::string action = "choose a data set's storage";
    Handle creation(checked(H5Pcreate(H5P_DATASET_CREATE), action), H5Pclose);
    checked(H5Pset_obj_track_times(creation.get(), false), action);
    if (shape.empty() || std::find(shape.begin(), shape.end(), std::size_t{0}) != shape.end()) return creation;

    std::vector<hsize_t> chunk(shape.size(), 1);
    std::size_t room = std::max<std::size_t>(1, chunk_bytes / element_size);
    // Readers load one layer at a time, so a chunk holds a single layer unless layers are very small.
    std::size_t layer = element_size;
    for (std::size_t i = 1; i < shape.size(); ++i) layer *= shape[i];
    const bool split_layers = shape.size() > 1 && layer >= 4096;
    for (std::size_t i = shape.size(); i-- > (split_layers ? 1U : 0U);) {
        // Makes pieces of equal size, because HDF5 also stores the unused part of the last piece.
        const std::size_t n_pieces = (shape[i] + std::min(shape[i], room) - 1) / std::min(shape[i], room);
        chunk[i] = (shape[i] + n_pieces - 1) / n_pieces;
        room = std::max<std::size_t>(1, room / chunk[i]);
    }
    checked(H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()), action);
    checked(H5Pset_shuffle(creation.get()), action);
    checked(H5Pset_deflate(creation.get(), deflate_level), action);
    return creation;
}

template <class T>
void write_data_set(hid_t location, const std::string& path, std::span<const T> values,
                    std::span<const std::size_t> shape) {
    write_raw(location, path, native_type<T>(), shape, values.data());
}
void write_texts(hid_t location, const std::string& path, const std::vector<std::string>& values) {
    std::size_t longest = 1;
    for (const std::string& text : values) longest = std::max(longest, text.size());
    const std::size_t shape[] = {values.size()};
    if (longest <= fixed_text_bytes / std::max<std::size_t>(1, values.size())) {
        std::vector<char> bytes(values.size() * longest, '\0');
        for (std::size_t i = 0; i < values.size(); ++i) {
            std::copy(values[i].begin(), values[i].end(), bytes.begin() + static_cast<std::ptrdiff_t>(i * longest));
        }
        const Handle type = text_type(longest);
        write_raw(location, path, type.get(), shape, bytes.data());
        return;
    }
    std::vector<const char*> pointers;
    pointers.reserve(values.size());
    for (const std::string& text : values) pointers.push_back(text.c_str());
    const Handle type = text_type(0);
    write_raw(location, path, type.get(), shape, static_cast<const void*>(pointers.data()));
}

void require_plausible_shape(const DataSetInfo& found) {
    if (!is_plausible_size(found.bytes, found.stored_bytes)) {
        throw Failure(fmt::format("the shape ({}) is too large for {} stored bytes", fmt::join(found.shape, ", "),
                                  found.stored_bytes),
                      false);
    }
}

void require_block_inside(const Block& block, std::span<const std::size_t> shape) {
    bool inside = block.first.size() == shape.size() && block.count.size() == shape.size();
    for (std::size_t i = 0; inside && i < shape.size(); ++i) {
        inside = block.count[i] <= shape[i] && block.first[i] <= shape[i] - block.count[i];
    }
    if (!inside) {
        throw std::out_of_range(fmt::format("the block at ({}) of size ({}) lies outside the shape ({})",
                                            fmt::join(block.first, ", "), fmt::join(block.count, ", "),
                                            fmt::join(shape, ", ")));
    }
}

template <class T>
std::vector<T> read_data_set(hid_t data_set, const Block* block) {
    const DataSetInfo found = data_set_info(data_set);
    if (!found.element || *found.element == schema::Type::text) {
        throw Failure(fmt::format("expected numbers, found {}", found.type), false);
    }
    require_plausible_shape(found);
    if constexpr (std::is_same_v<T, double>) {
        if (found.element == schema::Type::f32) {  // faster than HDF5's conversion
            const std::vector<float> floats = read_data_set<float>(data_set, block);
            return {floats.begin(), floats.end()};
        }
    }
    const std::string action = "read the data set";
    if (block != nullptr) require_block_inside(*block, found.shape);
    const std::vector<std::size_t>& extents = block == nullptr ? found.shape : block->count;
    std::vector<T> out(std::accumulate(extents.begin(), extents.end(), std::size_t{1}, std::multiplies<>()));
    if (!out.empty()) read_values(data_set, block, native_type<T>(), out.data(), action);
    return out;
}
static_assert(std::endian::native == std::endian::little, "numbers in memory are written unchanged");

#define KVSCOPE_INSTANTIATE(T, type)                                                                           \
    template <>                                                                                                \
    hid_t native_type<T>() {                                                                                   \
        return type;                                                                                           \
    }                                                                                                          \
    template void write_data_set(hid_t, const std::string&, std::span<const T>, std::span<const std::size_t>); \
    template std::vector<T> read_data_set(hid_t, const Block*);

KVSCOPE_INSTANTIATE(float, H5T_IEEE_F32LE)
KVSCOPE_INSTANTIATE(double, H5T_IEEE_F64LE)
KVSCOPE_INSTANTIATE(std::int32_t, H5T_STD_I32LE)
KVSCOPE_INSTANTIATE(std::uint8_t, H5T_STD_U8LE)
KVSCOPE_INSTANTIATE(std::uint16_t, H5T_STD_U16LE)
KVSCOPE_INSTANTIATE(std::uint32_t, H5T_STD_U32LE)
KVSCOPE_INSTANTIATE(std::uint64_t, H5T_STD_U64LE)

#undef KVSCOPE_INSTANTIATE

std::vector<std::string> read_texts(hid_t data_set) {
    const DataSetInfo found = data_set_info(data_set);
    if (found.element != schema::Type::text) throw Failure(fmt::format("expected text, found {}", found.type), false);
    require_plausible_shape(found);
    const std::string action = "read the data set";
    const Handle type(checked(H5Dget_type(data_set), action), H5Tclose);
    const Handle space(checked(H5Dget_space(data_set), action), H5Sclose);
    const std::size_t count =
        std::accumulate(found.shape.begin(), found.shape.end(), std::size_t{1}, std::multiplies<>());
    if (count == 0) return {};
    return texts_of_type(type.get(), space.get(), count, action, [&](hid_t memory_type, void* values) {
        read_values(data_set, nullptr, memory_type, values, action);
    });
}

}  // namespace kvscope::trace::h5
