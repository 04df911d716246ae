// Wrappers of HDF5's C interface: handles close themselves, failed calls throw, and types are checked before reads.
#pragma once

// Selects the interface of HDF5 1.10 in newer releases.
#define H5_USE_110_API
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trace/records/block.h"
#include "trace/records/schema.h"
#include "trace/records/trace_errors.h"

namespace kvscope::trace::h5 {

/// Locks HDF5 and silences its error printing. A thread may hold several guards; waiting threads get the lock in turn.
class Guard {
 public:
    Guard();
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    /// Lets waiting threads use HDF5 during long work. Does nothing if this thread holds another Guard.
    void let_others();

 private:
    void enter();

    std::unique_lock<std::recursive_mutex> lock_;
};

/// A failed HDF5 call. Reader and writer add the file name and rethrow their own error types.
struct Failure : TraceError {
    Failure(const std::string& message, bool file_truncated, int why = 0)
        : TraceError(message), truncated(file_truncated), system_error(why) {}
    bool truncated;
    int system_error;  ///< errno if the system caused the failure, else 0
};

/// Records the errno of a failed system call for the error message of the HDF5 call in progress. 0 clears the record.
void note_system_error(int error);

/// Throws ReadFailed if the system caused the failure, else DamagedTrace. `where` names the place, e.g. "t.h5: /model".
[[noreturn]] void throw_unreadable(const std::string& where, const Failure& failure);
/// Returns action(). Throws a Failure like throw_unreadable().
template <class Action>
auto with_place_in_errors(const std::string& where, Action action) -> decltype(action()) {
    try {
        return action();
    } catch (const Failure& failure) {
        throw_unreadable(where, failure);
    }
}

class Handle {
 public:
    using Close = herr_t (*)(hid_t);
    Handle() = default;
    Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(id_, other.id_);
        std::swap(close_, other.close_);
        return *this;
    }
    ~Handle();
    [[nodiscard]] hid_t get() const { return id_; }
    explicit operator bool() const { return id_ >= 0; }
    /// Closes the object. Unlike the destructor, throws Failure if closing fails.
    void close(const std::string& action);

 private:
    hid_t id_ = -1;
    Close close_ = nullptr;
};

/// Returns `result`. Throws Failure("cannot <action>: <HDF5's message>") if `result` is negative.
template <class Result>
Result checked(Result result, const std::string& action);

/// Whether an object exists and is not hidden by damage. Throws Failure if the system cannot read the file.
[[nodiscard]] bool exists(hid_t location, const std::string& path);
[[nodiscard]] bool is_group(hid_t location, const std::string& path);
[[nodiscard]] Handle open_group(hid_t location, const std::string& path);
Handle create_group(hid_t location, const std::string& path);
/// Returns properties with which HDF5 also creates the groups that a new path needs.
[[nodiscard]] Handle link_properties();
/// Returns the names in a group. Numeric names are in numeric order.
[[nodiscard]] std::vector<std::string> members(hid_t location, const std::string& path);
/// Returns an object's address in its file. Two names with one address are the same object.
[[nodiscard]] std::uint64_t address(hid_t location, const std::string& path);

/// Value and type of an attribute.
struct Value {
    enum class Kind { text, integer, real, other };
    Kind kind = Kind::other;
    bool is_list = false;
    std::string type;  ///< type name, e.g. text, i32, u64, f64
    std::vector<std::string> texts;
    std::vector<std::int64_t> integers;  ///< u64 values above the range of int64_t wrap around
    std::vector<double> reals;           ///< also filled for integers
};

[[nodiscard]] std::optional<Value> read_attribute(hid_t object, const std::string& name);
[[nodiscard]] std::vector<std::string> attribute_names(hid_t object);
/// Copies all attributes of an object to another object, also of another file.
void copy_attributes(hid_t from, hid_t to);

/// Texts are stored as UTF-8 of variable length, which h5py returns as str.
void write_attribute(hid_t object, const std::string& name, const std::string& value);
void write_attribute(hid_t object, const std::string& name, std::int64_t value);
void write_attribute(hid_t object, const std::string& name, std::uint64_t value);
void write_attribute(hid_t object, const std::string& name, double value);
void write_attribute(hid_t object, const std::string& name, bool value);
void write_attribute(hid_t object, const std::string& name, const std::vector<std::int32_t>& value);

struct DataSetInfo {
    std::string type;                     ///< type name, e.g. f32, u64, text, table
    std::optional<schema::Type> element;  ///< nullopt if the trace format does not use the type
    std::vector<std::size_t> shape;
    std::uint64_t bytes = 0;
    std::uint64_t stored_bytes = 0;
};

[[nodiscard]] Handle open_data_set(hid_t location, const std::string& path);
[[nodiscard]] DataSetInfo data_set_info(hid_t data_set);
[[nodiscard]] std::string type_name(hid_t type);
[[nodiscard]] const char* type_name(schema::Type type);

/// Throws Failure if the data set's shape is damaged, i.e. too large for the stored bytes.
void require_plausible_shape(const DataSetInfo& found);
void require_block_inside(const Block& block, std::span<const std::size_t> shape);

/// Reads the data set or one block. Throws Failure, or std::out_of_range for a block outside the data set.
template <class T>
std::vector<T> read_data_set(hid_t data_set, const Block* block = nullptr);
[[nodiscard]] std::vector<std::string> read_texts(hid_t data_set);
/// Returns the texts that `read` stores in the given type, of fixed or variable length. @param read may throw
[[nodiscard]] std::vector<std::string> texts_of_type(hid_t type, hid_t space, std::size_t count,
                                                     const std::string& action,
                                                     const std::function<void(hid_t type, void* values)>& read);

/// Writes a chunked, shuffled and deflated data set. Chunks hold about a megabyte and never span two layers.
template <class T>
void write_data_set(hid_t location, const std::string& path, std::span<const T> values,
                    std::span<const std::size_t> shape);
void write_texts(hid_t location, const std::string& path, const std::vector<std::string>& values);
[[nodiscard]] Handle creation_properties(std::span<const std::size_t> shape, std::size_t element_size);
/// Returns the type of T in memory and in files.
template <class T>
[[nodiscard]] hid_t native_type();
/// Returns a UTF-8 text type of `length` bytes padded with NUL, or of variable length if `length` is 0.
[[nodiscard]] Handle text_type(std::size_t length);
[[nodiscard]] bool is_plausible_size(std::uint64_t bytes, std::uint64_t stored_bytes);

}  // namespace kvscope::trace::h5
