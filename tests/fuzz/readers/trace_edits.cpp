// A sound trace in which attributes, data sets and links are replaced as the bytes say. Bytes changed at random are
// mostly met by HDF5's checksums; here the file is sound HDF5, and what it says is not a sound trace.
#define H5_USE_110_API
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/fuzz/read_trace.h"
#include "tests/fuzz/reader.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::fuzz {
namespace {

namespace fs = std::filesystem;

/// The input, taken from its front; zeros behind its end.
class Bytes {
 public:
    explicit Bytes(std::string_view bytes) : left_(bytes) {}
    bool is_empty() const { return left_.empty(); }
    std::string take(size_t count) {
        std::string taken(left_.substr(0, count));
        left_.remove_prefix(taken.size());
        return taken;
    }
    template <class T>
    T number() {
        T value{};
        const std::string bytes = take(sizeof value);
        std::memcpy(&value, bytes.data(), bytes.size());
        return value;
    }
    uint8_t byte() { return number<uint8_t>(); }

    int64_t integer() {
        constexpr int64_t most = std::numeric_limits<int64_t>::max();
        static constexpr std::array<int64_t, 12> edges{
            0, 1, 2, -1, 3, 48, 1 << 20, (int64_t{1} << 31) - 1, int64_t{1} << 31, most, -most - 1, 255};
        const uint8_t choice = byte();
        return choice < edges.size() ? edges[choice] : choice < 128 ? choice - 64 : number<int64_t>();
    }
    double real() {
        using Limits = std::numeric_limits<double>;
        static constexpr std::array<double, 7> edges{0.0,    -0.0,  1.0, Limits::quiet_NaN(), Limits::infinity(),
                                                     -1e300, 1e-310};
        const uint8_t choice = byte();
        return choice < edges.size() ? edges[choice] : number<double>();
    }

 private:
    std::string_view left_;
};

struct Attribute {
    std::string object, name;
};

/// What is in a trace, by name.
struct Names {
    std::vector<std::string> objects;
    std::vector<Attribute> attributes;
};

herr_t add_attribute(hid_t, const char* name, const H5A_info_t*, void* data) {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
}

herr_t add_object(hid_t, const char* name, const H5O_info_t*, void* data) {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
}

Names names_in(const fs::path& path) {
    Names names;
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, add_object, &names.objects, H5O_INFO_BASIC);
    for (const std::string& object : names.objects) {
        std::vector<std::string> found;
        const hid_t opened = H5Oopen(file, object.c_str(), H5P_DEFAULT);
        H5Aiterate2(opened, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute, &found);
        H5Oclose(opened);
        for (const std::string& name : found) names.attributes.push_back({object, name});
    }
    H5Fclose(file);
    std::erase(names.objects, ".");
    return names;
}

const fs::path& sound_trace() {
    static const fs::path path = [] {
        fs::path made = scratch() / "sound.h5";
        trace::sample::write(made);
        return made;
    }();
    return path;
}

void put_attribute(hid_t object, const std::string& name, hid_t type, hid_t space, const void* value) {
    if (H5Aexists(object, name.c_str()) > 0) H5Adelete(object, name.c_str());
    const hid_t attribute = H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0) return;
    if (value != nullptr) H5Awrite(attribute, type, value);
    H5Aclose(attribute);
}

void change_attribute(hid_t file, const Attribute& which, Bytes& bytes) {
    const hid_t object = H5Oopen(file, which.object.c_str(), H5P_DEFAULT);
    if (object < 0) return;
    const hid_t scalar = H5Screate(H5S_SCALAR);
    const int64_t integer = bytes.integer();
    switch (bytes.byte() % 6) {
        case 0:
            H5Adelete(object, which.name.c_str());
            break;
        case 1:
            put_attribute(object, which.name, H5T_NATIVE_INT64, scalar, &integer);
            break;
        case 2: {
            const double value = bytes.real();
            put_attribute(object, which.name, H5T_NATIVE_DOUBLE, scalar, &value);
            break;
        }
        case 3: {
            const std::string text = bytes.take(bytes.byte() % 40) + '\0';
            const hid_t type = H5Tcopy(H5T_C_S1);
            H5Tset_size(type, text.size());
            H5Tset_cset(type, H5T_CSET_UTF8);
            put_attribute(object, which.name, type, scalar, text.data());
            H5Tclose(type);
            break;
        }
        case 4: {
            const hsize_t count = bytes.byte() % 9;
            std::vector<int32_t> values(count + 1);
            for (int32_t& value : values) value = static_cast<int32_t>(bytes.integer());
            const hid_t list = H5Screate_simple(1, &count, nullptr);
            put_attribute(object, which.name, H5T_NATIVE_INT32, list, values.data());
            H5Sclose(list);
            break;
        }
        default: {
            const hid_t nothing = H5Screate(H5S_NULL);
            put_attribute(object, which.name, H5T_NATIVE_DOUBLE, nothing, nullptr);
            H5Sclose(nothing);
        }
    }
    H5Sclose(scalar);
    H5Oclose(object);
}

/// Another data set under the same name.
void replace_data_set(hid_t file, const std::string& name, Bytes& bytes) {
    const std::array<hid_t, 8> types{H5T_NATIVE_INT32,  H5T_NATIVE_UINT8, H5T_NATIVE_UINT16, H5T_NATIVE_UINT32,
                                     H5T_NATIVE_UINT64, H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE, H5T_NATIVE_INT64};
    const hid_t type = types[bytes.byte() % types.size()];
    std::vector<hsize_t> shape(bytes.byte() % 5);
    size_t count = 1;
    for (hsize_t& extent : shape) {
        extent = bytes.byte() % 50;
        count *= extent;
    }
    if (count > 1 << 16) return;
    H5Ldelete(file, name.c_str(), H5P_DEFAULT);
    const hid_t space =
        shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t made = H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    std::vector<double> values(count + 1);
    const double step = bytes.real(), first = bytes.real();
    for (size_t i = 0; i < count; ++i) values[i] = first + step * static_cast<double>(i);
    if (made >= 0) H5Dwrite(made, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    if (made >= 0) H5Dclose(made);
    H5Sclose(space);
}

/// One element of a data set of numbers.
void change_value(hid_t file, const std::string& name, Bytes& bytes) {
    const hid_t set = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
    if (set < 0) return;
    const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    std::array<hsize_t, H5S_MAX_RANK> extents{}, at{};
    const int rank = H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    const bool is_number = H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_FLOAT;
    if (is_number && rank > 0 && std::count(extents.begin(), extents.begin() + rank, 0u) == 0) {
        for (int i = 0; i < rank; ++i)
            at[static_cast<size_t>(i)] = bytes.number<uint16_t>() % extents[static_cast<size_t>(i)];
        H5Sselect_elements(space, H5S_SELECT_SET, 1, at.data());
        const hid_t one = H5Screate(H5S_SCALAR);
        if (bytes.byte() % 2 == 0) {
            const double value = bytes.real();
            H5Dwrite(set, H5T_NATIVE_DOUBLE, one, space, H5P_DEFAULT, &value);
        } else {
            const int64_t value = bytes.integer();
            H5Dwrite(set, H5T_NATIVE_INT64, one, space, H5P_DEFAULT, &value);
        }
        H5Sclose(one);
    }
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
}

void change(hid_t file, const Names& names, Bytes& bytes) {
    const uint8_t what = bytes.byte();
    const std::string& object = names.objects[bytes.number<uint16_t>() % names.objects.size()];
    const std::string& other = names.objects[bytes.number<uint16_t>() % names.objects.size()];
    switch (what % 8) {
        case 0:
        case 1:
        case 2:
            return change_attribute(file, names.attributes[bytes.number<uint16_t>() % names.attributes.size()], bytes);
        case 3:
            return replace_data_set(file, object, bytes);
        case 4:
        case 5:
            return change_value(file, object, bytes);
        case 6:
            H5Ldelete(file, object.c_str(), H5P_DEFAULT);
            H5Lcreate_hard(file, other.c_str(), file, object.c_str(), H5P_DEFAULT, H5P_DEFAULT);
            return;
        default:
            H5Ldelete(file, object.c_str(), H5P_DEFAULT);
            if (bytes.byte() % 2 == 0)
                H5Lcreate_soft(("/" + other).c_str(), file, object.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    }
}

}  // namespace

Reader trace_edits_reader() {
    return {"trace_edits", [](std::string_view input) {
                H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
                static const Names names = names_in(sound_trace());
                const fs::path path = scratch() / "edited.h5";
                fs::copy_file(sound_trace(), path, fs::copy_options::overwrite_existing);
                const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
                if (file < 0) throw std::logic_error("the sound trace cannot be opened");
                Bytes bytes(input);
                for (int i = 0; i < 12 && !bytes.is_empty(); ++i) change(file, names, bytes);
                H5Fclose(file);
                read_trace(path);
            }};
}

}  // namespace kvscope::fuzz
