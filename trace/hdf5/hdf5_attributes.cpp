#include <fmt/format.h>

#include <cstring>

#include "trace/hdf5/hdf5.h"

namespace kvscope::trace::h5 {

namespace {

std::size_t element_count(hid_t space, const std::string& action) {
    if (H5Sget_simple_extent_type(space) == H5S_NULL) return 0;
    const auto count = H5Sget_simple_extent_npoints(space);
    if (count < 0) throw Failure(fmt::format("cannot {}: its shape is unreadable", action), false);
    return static_cast<std::size_t>(count);
}

std::size_t require_plausible_count(hid_t type, hid_t space, const std::string& action) {
    const std::size_t count = element_count(space, action);
    const std::size_t element_size = H5Tget_size(type);
    if (element_size == 0 || count > (std::size_t{64} << 20) / element_size) {
        throw Failure(
            fmt::format("cannot {}: its size ({} elements of {} bytes) is implausible", action, count, element_size),
            false);
    }
    return count;
}

void write_raw(hid_t object, const std::string& name, hid_t type, hid_t memory_type, hid_t space, const void* data) {
    const std::string action = fmt::format("write the attribute {}", name);
    if (checked(H5Aexists(object, name.c_str()), action) > 0) checked(H5Adelete(object, name.c_str()), action);
    Handle attribute(checked(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), action),
                     H5Aclose);
    checked(H5Awrite(attribute.get(), memory_type, data), action);
    attribute.close(action);
}

void write_scalar(hid_t object, const std::string& name, hid_t type, hid_t memory_type, const void* data) {
    const Handle space(checked(H5Screate(H5S_SCALAR), "make a scalar"), H5Sclose);
    write_raw(object, name, type, memory_type, space.get(), data);
}

}  // namespace

std::vector<std::string> texts_of_type(hid_t type, hid_t space, std::size_t count, const std::string& action,
                                       const std::function<void(hid_t type, void* values)>& read) {
    std::vector<std::string> out;
    out.reserve(count);
    if (checked(H5Tis_variable_str(type), action) > 0) {
        std::vector<char*> pointers(count, nullptr);
        read(type, static_cast<void*>(pointers.data()));
        for (const char* text : pointers) out.emplace_back(text == nullptr ? "" : text);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, static_cast<void*>(pointers.data()));
        return out;
    }
    const std::size_t length = H5Tget_size(type);
    std::vector<char> bytes(count * length);
    read(type, bytes.data());
    for (std::size_t i = 0; i < count; ++i) {
        const char* text = bytes.data() + i * length;
        out.emplace_back(text, strnlen(text, length));
    }
    return out;
}

std::vector<std::string> attribute_names(hid_t object) {
    std::vector<std::string> names;
    const auto add = [](hid_t, const char* name, const H5A_info_t*, void* data) -> herr_t {
        static_cast<std::vector<std::string>*>(data)->emplace_back(name);
        return 0;
    };
    checked(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names), "list the attributes");
    return names;
}

std::optional<Value> read_attribute(hid_t object, const std::string& name) {
    const std::string action = fmt::format("read the attribute {}", name);
    if (checked(H5Aexists(object, name.c_str()), action) == 0) return std::nullopt;
    const Handle attribute(checked(H5Aopen(object, name.c_str(), H5P_DEFAULT), action), H5Aclose);
    const Handle type(checked(H5Aget_type(attribute.get()), action), H5Tclose);
    const Handle space(checked(H5Aget_space(attribute.get()), action), H5Sclose);
    const std::size_t count = require_plausible_count(type.get(), space.get(), action);

    Value value;
    value.is_list = H5Sget_simple_extent_type(space.get()) != H5S_SCALAR;
    value.type = type_name(type.get());
    switch (H5Tget_class(type.get())) {
        case H5T_STRING:
            value.kind = Value::Kind::text;
            value.texts = texts_of_type(type.get(), space.get(), count, action, [&](hid_t memory_type, void* values) {
                checked(H5Aread(attribute.get(), memory_type, values), action);
            });
            break;
        case H5T_INTEGER:
        case H5T_ENUM:  // h5py stores bool as an enumeration
            value.kind = Value::Kind::integer;
            value.integers.resize(count);
            if (count > 0) {
                const bool is_unsigned =
                    H5Tget_class(type.get()) == H5T_INTEGER && H5Tget_sign(type.get()) == H5T_SGN_NONE;
                checked(
                    H5Aread(attribute.get(), is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, value.integers.data()),
                    action);
                value.reals.assign(value.integers.begin(), value.integers.end());
            }
            break;
        case H5T_FLOAT:
            value.kind = Value::Kind::real;
            value.reals.resize(count);
            if (count > 0) checked(H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, value.reals.data()), action);
            break;
        default:
            break;
    }
    return value;
}

void copy_attributes(hid_t from, hid_t to) {
    for (const std::string& name : attribute_names(from)) {
        const std::string action = fmt::format("copy the attribute {}", name);
        const Handle attribute(checked(H5Aopen(from, name.c_str(), H5P_DEFAULT), action), H5Aclose);
        const Handle type(checked(H5Aget_type(attribute.get()), action), H5Tclose);
        const Handle space(checked(H5Aget_space(attribute.get()), action), H5Sclose);
        const std::size_t count = require_plausible_count(type.get(), space.get(), action);
        std::vector<char> values(count * H5Tget_size(type.get()) + 1);  // HDF5 requires a valid pointer
        if (count > 0) checked(H5Aread(attribute.get(), type.get(), values.data()), action);
        write_raw(to, name, type.get(), type.get(), space.get(), values.data());
        if (count > 0 && H5Tis_variable_str(type.get()) > 0)
            H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, values.data());
    }
}

void write_attribute(hid_t object, const std::string& name, const std::string& value) {
    const Handle type = text_type(0);
    const char* text = value.c_str();
    write_scalar(object, name, type.get(), type.get(), static_cast<const void*>(&text));
}

void write_attribute(hid_t object, const std::string& name, std::int64_t value) {
    write_scalar(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void write_attribute(hid_t object, const std::string& name, std::uint64_t value) {
    write_scalar(object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}

void write_attribute(hid_t object, const std::string& name, double value) {
    write_scalar(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

void write_attribute(hid_t object, const std::string& name, bool value) {
    const std::uint8_t flag = value ? 1 : 0;
    write_scalar(object, name, H5T_STD_U8LE, H5T_NATIVE_UINT8, &flag);
}

void write_attribute(hid_t object, const std::string& name, const std::vector<std::int32_t>& value) {
    const hsize_t length = value.size();
    const Handle space(checked(H5Screate_simple(1, &length, nullptr), "make a list"), H5Sclose);
    // HDF5 requires a valid pointer even for an empty list.
    const std::int32_t nothing = 0;
    write_raw(object, name, H5T_STD_I32LE, H5T_NATIVE_INT32, space.get(), value.empty() ? &nothing : value.data());
}

}  // namespace kvscope::trace::h5
