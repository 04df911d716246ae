#include "trace/read_block.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/records/storable_text.h"

namespace kvscope::trace {

namespace {

const std::string action = "read the data set";

h5::Handle as_handle(hid_t type) { return {h5::checked(type, action), H5Tclose}; }

enum class Shown { number, signed_integer, unsigned_integer, text, name, nothing };

Shown shown_as(hid_t type) {
    switch (H5Tget_class(type)) {
        case H5T_INTEGER:
            if (H5Tget_size(type) > 8) return Shown::nothing;
            return H5Tget_sign(type) == H5T_SGN_NONE ? Shown::unsigned_integer : Shown::signed_integer;
        case H5T_FLOAT:
            return Shown::number;
        case H5T_STRING:
            return Shown::text;
        case H5T_ENUM:
            return Shown::name;
        default:
            return Shown::nothing;
    }
}

h5::Handle memory_type(hid_t stored, Shown shown) {
    switch (shown) {
        case Shown::number:
            return as_handle(H5Tcopy(H5T_NATIVE_DOUBLE));
        case Shown::signed_integer:
            return as_handle(H5Tcopy(H5T_NATIVE_INT64));
        case Shown::unsigned_integer:
            return as_handle(H5Tcopy(H5T_NATIVE_UINT64));
        case Shown::text:
        case Shown::name:
        case Shown::nothing:
            break;
    }
    return as_handle(H5Tcopy(stored));
}

template <class T>
T value_at(const char* bytes) {
    T out;
    std::memcpy(&out, bytes, sizeof out);
    return out;
}

template <class Integer>
DataSetValue exact(Integer value) {
    constexpr auto limit = Integer{1} << 53;
    const bool fits = value <= limit && (std::is_unsigned_v<Integer> || value >= Integer{0} - limit);
    return fits ? DataSetValue(static_cast<double>(value)) : DataSetValue(std::to_string(value));
}

DataSetValue value_of(const char* bytes, hid_t type, Shown shown) {
    switch (shown) {
        case Shown::number:
            return value_at<double>(bytes);
        case Shown::signed_integer:
            return exact(value_at<std::int64_t>(bytes));
        case Shown::unsigned_integer:
            return exact(value_at<std::uint64_t>(bytes));
        case Shown::text: {
            if (H5Tis_variable_str(type) > 0) {
                const char* text = value_at<const char*>(bytes);
                return storable_text(text == nullptr ? "" : text);
            }
            return storable_text({bytes, strnlen(bytes, H5Tget_size(type))});
        }
        case Shown::name: {
            char name[256] = "";
            return H5Tenum_nameof(type, bytes, name, sizeof name) < 0 ? "?" : storable_text(name);
        }
        case Shown::nothing:
            break;
    }
    return {};
}

std::vector<DataSetValue> read_block(hid_t data_set, const Block& block, hid_t stored, const std::string* column) {
    const std::size_t count =
        std::accumulate(block.count.begin(), block.count.end(), std::size_t{1}, std::multiplies<>());
    const Shown shown = shown_as(stored);
    std::vector<DataSetValue> out(count);
    if (count == 0 || shown == Shown::nothing) return out;
    const h5::Handle memory = memory_type(stored, shown);
    const std::size_t size = H5Tget_size(memory.get());
    if (!h5::is_plausible_size(std::uint64_t{size} * count, H5Dget_storage_size(data_set))) {
        throw h5::Failure(fmt::format("cannot {}: a size of {} bytes per element is implausible", action, size), false);
    }
    h5::Handle wrapped;
    if (column != nullptr) {
        wrapped = as_handle(H5Tcreate(H5T_COMPOUND, size));
        h5::checked(H5Tinsert(wrapped.get(), column->c_str(), 0, memory.get()), action);
    }
    const hid_t type = column != nullptr ? wrapped.get() : memory.get();

    const h5::Handle file_space(h5::checked(H5Dget_space(data_set), action), H5Sclose);
    h5::Handle memory_space(h5::checked(H5Screate(H5S_SCALAR), action), H5Sclose);
    if (!block.count.empty()) {
        const std::vector<hsize_t> first(block.first.begin(), block.first.end());
        const std::vector<hsize_t> extent(block.count.begin(), block.count.end());
        memory_space = h5::Handle(
            h5::checked(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), action), H5Sclose);
        h5::checked(
            H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, first.data(), nullptr, extent.data(), nullptr),
            action);
    }
    std::vector<char> bytes(count * size, '\0');
    h5::checked(H5Dread(data_set, type, memory_space.get(), file_space.get(), H5P_DEFAULT, bytes.data()), action);
    for (std::size_t i = 0; i < count; ++i) out[i] = value_of(bytes.data() + i * size, memory.get(), shown);
    if (shown == Shown::text && H5Tis_variable_str(memory.get()) > 0) {
        H5Dvlen_reclaim(type, memory_space.get(), H5P_DEFAULT, bytes.data());
    }
    return out;
}

/// A block of a data set or of a task's results. All batches of a task are read as one data set.
class Window {
 public:
    Window(Source& source, std::vector<std::filesystem::path> files, const std::string& data_set,
           const std::vector<std::size_t>& first, std::size_t max_rows, std::size_t max_columns)
        : source_(source), files_(std::move(files)), data_set_(data_set) {
        const h5::Handle open = open_part(files_.front());
        type_ = as_handle(H5Dget_type(open.get()));
        const h5::DataSetInfo found = h5::data_set_info(open.get());
        out_.type = found.type;
        out_.shape = found.shape;
        const h5::Handle space(h5::checked(H5Dget_space(open.get()), action), H5Sclose);
        const bool empty = H5Sget_simple_extent_type(space.get()) == H5S_NULL;
        for (std::size_t i = 1; i < files_.size(); ++i) {
            out_.shape.at(0) += h5::data_set_info(open_part(files_[i]).get()).shape.at(0);
        }
        if (H5Tget_class(type_.get()) == H5T_COMPOUND) n_members_ = H5Tget_nmembers(type_.get());

        extents_ = out_.shape;
        if (extents_.empty()) extents_.push_back(empty ? 0 : 1);
        if (n_members_ >= 0) {
            extents_.push_back(static_cast<std::size_t>(n_members_));
        } else if (extents_.size() == 1) {
            extents_.push_back(1);
        }
        first_ = first;
        first_.resize(std::max(first_.size(), extents_.size()), 0);
        const std::size_t row = extents_.size() - 2;
        bool inside = first_.size() == extents_.size();
        for (std::size_t i = 0; inside && i < extents_.size(); ++i) {
            inside = i < row ? first_[i] < extents_[i] : first_[i] <= extents_[i];
        }
        if (!inside) {
            throw std::out_of_range(fmt::format("the block at ({}) lies outside the shape ({})", fmt::join(first, ", "),
                                                fmt::join(out_.shape, ", ")));
        }
        out_.first_row = first_[row];
        out_.first_column = first_[row + 1];
        out_.n_rows = std::min(max_rows, extents_[row] - out_.first_row);
        out_.n_columns = std::min(max_columns, extents_[row + 1] - out_.first_column);
    }

    DataSetBlock read() {
        if (n_members_ >= 0) {
            out_.values.resize(out_.n_rows * out_.n_columns);
            for (std::size_t column = 0; column < out_.n_columns; ++column) read_column(column);
        } else {
            out_.values = read_rows(type_.get(), nullptr);
        }
        return std::move(out_);
    }

 private:
    void read_column(std::size_t column) {
        const auto member = static_cast<unsigned>(out_.first_column + column);
        char* raw = H5Tget_member_name(type_.get(), member);
        const std::string name = raw == nullptr ? "" : raw;
        H5free_memory(raw);
        const h5::Handle type = as_handle(H5Tget_member_type(type_.get(), member));
        out_.names.push_back(storable_text(name));
        out_.column_types.push_back(h5::type_name(type.get()));
        std::vector<DataSetValue> values = read_rows(type.get(), &name);
        for (std::size_t row = 0; row < out_.n_rows; ++row) {
            out_.values[row * out_.n_columns + column] = std::move(values[row]);
        }
    }

    std::vector<DataSetValue> read_rows(hid_t type, const std::string* column) const {
        Block block;
        const std::size_t rank = out_.shape.size();
        const std::size_t row = extents_.size() - 2;
        for (std::size_t i = 0; i < rank; ++i) {
            block.first.push_back(first_[i]);
            block.count.push_back(i < row ? 1 : i == row ? out_.n_rows : out_.n_columns);
        }
        // A one-dimensional data set is read as one column, for which the block has no dimension.
        if (column == nullptr && rank < extents_.size() && out_.n_columns == 0) return {};
        if (rank == 0 && out_.n_rows == 0) return {};
        if (files_.size() == 1) return read_block(open_part(files_.front()).get(), block, type, column);

        std::vector<DataSetValue> out;
        std::size_t skipped = block.first[0], wanted = block.count[0];
        for (const auto& file : files_) {
            const h5::Handle part = open_part(file);
            const std::size_t length = h5::data_set_info(part.get()).shape.at(0);
            block.first[0] = std::min(skipped, length);
            block.count[0] = std::min(wanted, length - block.first[0]);
            skipped -= block.first[0];
            wanted -= block.count[0];
            std::vector<DataSetValue> values = read_block(part.get(), block, type, column);
            std::move(values.begin(), values.end(), std::back_inserter(out));
        }
        return out;
    }

    /// Opens the file again each time, because the source keeps only a few files open.
    h5::Handle open_part(const std::filesystem::path& file) const {
        return h5::open_data_set(source_.open(file).get(), data_set_);
    }

    Source& source_;
    std::vector<std::filesystem::path> files_;
    const std::string& data_set_;
    h5::Handle type_;
    int n_members_ = -1;  ///< number of a table's columns, or -1
    std::vector<std::size_t> extents_, first_;
    DataSetBlock out_;
};

bool lies_in(const std::string& data_set, const std::string& group) { return data_set.starts_with(group + "/"); }

std::vector<std::filesystem::path> files_with(const Source& source, const std::string& data_set) {
    if (!source.is_folder) return {source.path};
    if (source.model && lies_in(data_set, source.model->group)) return {source.model->file};
    for (const PromptPlace& prompt : source.prompts) {
        for (const GroupPlace& run : prompt.runs) {
            if (lies_in(data_set, run.group)) return {run.file};
        }
        if (lies_in(data_set, prompt.group)) return {prompt.file};
    }
    std::vector<std::filesystem::path> out;
    for (const auto& [task, tables] : source.results) {
        for (const GroupPlace& table : tables) {
            if (table.group == data_set) out.push_back(table.file);
        }
    }
    return out;
}

bool is_data_set(hid_t file, const std::string& path) {
    H5O_info_t found;
    return path.starts_with("/") && h5::exists(file, path) &&
           H5Oget_info_by_name2(file, path.c_str(), &found, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
           found.type == H5O_TYPE_DATASET;
}

}  // namespace

DataSetBlock read_data_set_block(const std::filesystem::path& path, const std::string& data_set,
                                 const std::vector<std::size_t>& first, std::size_t max_rows, std::size_t max_columns) {
    const h5::Guard guard;
    const std::string where = fmt::format("{}: {}", path.string(), data_set);
    try {
        Source source(path);
        std::vector<std::filesystem::path> files = files_with(source, data_set);
        std::erase_if(files, [&](const auto& file) { return !is_data_set(source.open(file).get(), data_set); });
        if (files.empty()) throw std::invalid_argument(fmt::format("{}: there is no data set with this name", where));
        return Window(source, std::move(files), data_set, first, max_rows, max_columns).read();
    } catch (const h5::Failure& failure) {
        h5::throw_unreadable(where, failure);
    } catch (const std::out_of_range& outside) {
        throw std::out_of_range(fmt::format("{}: {}", where, outside.what()));
    }
}

}  // namespace kvscope::trace
