// HDF5's C interface, each call wrapped once: handles close themselves, return codes become
// exceptions that carry HDF5's own message, types are checked before anything is read.
#pragma once

// Newer releases of HDF5 offer this interface under its old names.
#define H5_USE_110_API
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trace/reader.h"
#include "trace/schema.h"
#include "trace/trace_errors.h"

namespace kvscope::trace::h5 {

/// Held around every use of HDF5: the library is not thread-safe in every build of it. Also keeps
/// HDF5 from printing its errors, which the exceptions carry. May be held twice by one thread. Who waits gets it in
/// turn: a thread that takes it again and again does not keep others out.
class Guard {
 public:
    Guard();
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    /// In a long work: those who wait come first. Does nothing where the thread holds another Guard.
    void let_others();

 private:
    void enter();

    std::unique_lock<std::recursive_mutex> lock_;
};

/// A failed call. The reader and the writer add the file and turn it into their own types.
struct Failure : TraceError {
    Failure(const std::string& message, bool file_truncated, int why = 0)
        : TraceError(message), truncated(file_truncated), system_error(why) {}
    bool truncated;
    int system_error;  ///< errno where the system, not the contents, is why; else 0
};

/// For the driver of files being read: a call to the system failed with this errno, which is why the call into HDF5
/// that goes on will fail, too. Forgotten with 0.
void note_system_error(int error);

/// Throws ReadFailed where the system was why, else DamagedTrace; both name the place, as "t.h5: /model".
[[noreturn]] void throw_unreadable(const std::string& where, const Failure& failure);

/// An open HDF5 object.
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
    /// Closes now and reports a failure, which a destructor cannot.
    void close(const std::string& action);

 private:
    hid_t id_ = -1;
    Close close_ = nullptr;
};

/// Throws Failure("cannot <action>: <HDF5's message>") if `result` is negative.
template <class Result>
Result checked(Result result, const std::string& action);

/// False also where the file is so damaged that it cannot be told; Failure where the system does not let it be read.
bool exists(hid_t location, const std::string& path);
bool is_group(hid_t location, const std::string& path);
Handle open_group(hid_t location, const std::string& path);
/// Creates the groups on the way, too.
Handle create_group(hid_t location, const std::string& path);
/// Names in a group, numbers in numeric order.
std::vector<std::string> members(hid_t location, const std::string& path);
/// Identifies an object within its file: two names with one address are one object.
std::uint64_t address(hid_t location, const std::string& path);

/// The value of an attribute, or what a check or a list needs to know of one.
struct Value {
    enum class Kind { text, integer, real, other };
    Kind kind = Kind::other;
    bool is_list = false;
    std::string type;  ///< text, i32, u64, f64 …
    std::vector<std::string> texts;
    std::vector<std::int64_t> integers;  ///< u64 beyond int64_t wraps around
    std::vector<double> reals;           ///< filled for integers, too
};

std::optional<Value> read_attribute(hid_t object, const std::string& name);
std::vector<std::string> attribute_names(hid_t object);

// UTF-8 of variable length, which h5py gives as str.
void write_attribute(hid_t object, const std::string& name, const std::string& value);
void write_attribute(hid_t object, const std::string& name, std::int64_t value);
void write_attribute(hid_t object, const std::string& name, std::uint64_t value);
void write_attribute(hid_t object, const std::string& name, double value);
void write_attribute(hid_t object, const std::string& name, bool value);
void write_attribute(hid_t object, const std::string& name, const std::vector<std::int32_t>& value);

struct DataSetInfo {
    std::string type;                     ///< f32, u64, text, table …
    std::optional<schema::Type> element;  ///< none of ours: empty
    std::vector<std::size_t> shape;
    std::uint64_t bytes = 0;
    std::uint64_t stored_bytes = 0;
};

Handle open_data_set(hid_t location, const std::string& path);
DataSetInfo info(hid_t data_set);
/// Name of an element type: "i32", "f64", "text" …
std::string type_name(hid_t type);
const char* type_name(schema::Type type);

/// Throws Failure if the size is beyond all that the stored bytes can unpack to (a damaged shape).
void require_plausible(const DataSetInfo& found);
/// Throws std::out_of_range if the block does not lie within a data set of that shape.
void require_inside(const Block& block, std::span<const std::size_t> shape);

/// Throws as the two above do, and Failure where the elements are no numbers.
template <class T>
std::vector<T> read(hid_t data_set, const Block* block = nullptr);
std::vector<std::string> read_texts(hid_t data_set);

/// Chunked, shuffled and deflated, in chunks of about a megabyte that never span two layers.
template <class T>
void write(hid_t location, const std::string& path, std::span<const T> values, std::span<const std::size_t> shape);
void write_texts(hid_t location, const std::string& path, const std::vector<std::string>& values);
/// Property list for a data set of that shape, as write() uses it.
Handle creation_properties(std::span<const std::size_t> shape, std::size_t element_size);
/// The in-memory type of T.
template <class T>
hid_t native_type();
/// UTF-8 of variable length (length = 0) or of that many bytes, padded with NUL.
Handle text_type(std::size_t length);
/// True if the bytes may really be in the file.
bool plausible_size(std::uint64_t bytes, std::uint64_t stored_bytes);

}  // namespace kvscope::trace::h5
